"""Predicts with agents what a change of a shop's pages does to the next action.

  shop-r1 ab pages --store stores/mine --change change.toml \\
    --agents ngram,choice --out ab/mine --dry-run
  shop-r1 ab pages --store stores/mine --agents choice \\
    --change my_change.py:cheaper --placebo other_words.toml --out ab/cheaper \\
    --clicks "cart=*add_to_cart*" "banner=hero.*"

It works on any store; `shop-r1 ab` works on the demo shop only. A change is a
file of rules, or a function that turns the text of a simplified page into that of
B:

  # change.toml; instead of replace: hide = true, first = true,
  # or scale_prices = 1.1
  [[rule]]
  select = "[name$=add_to_cart]"
  replace = { "Add to cart" = "Put it into my basket" }

Agents are evaluated at every logged step with a page that the change touches: on the
original page (A) and the changed page (B), after the same logged past and with the
same seeds. The result is the share of each kind of next action (purchase, cart,
other clicks, search, leave, or an action that the page does not offer) and how far B
shifts it, with intervals over users. A placebo shows the effect of blank lines
alone. A change that touches no page, or too few users for a significant shift, is
refused.

Writes pages.json, pages.md, change.diff (what B looks like) and the answers to OUT;
the same call resumes after a stop.
Exit codes: 0 done, 1 an agent gave no answer at all, 2 the call or its input was
wrong.
"""

import sys

from benchmarks.ab.pages import report
from benchmarks.ab.pages.config import PagesConfig
from benchmarks.ab.pages.question import run_pages
from replay_sessions.foundation.command_line import command
from replay_sessions.foundation.durable_files import write_results
from replay_sessions.foundation.locks import working_alone_in
from replay_sessions.foundation.provenance import provenance
from replay_sessions.foundation.table import print_results
from replay_sessions.store import SessionStore


def _run(config: PagesConfig) -> int:
    with working_alone_in(config.out):
        results = run_pages(config)
        if not config.dry_run:
            made_with = provenance(config, store=SessionStore.open(config.store), seed=config.seed)
            record = {"results": results, "provenance": made_with}
            write_results(config.out, "pages", record, report.markdown(results))
    answered = [row for row in results.rows if row.shifts]
    print_results(*report.warnings(results))
    for row in answered:
        print_results(report.table(results, row), "")
    notes = ["No agent was evaluated (--dry-run)."] if config.dry_run else [report.LEGEND, report.LIMITS]
    written = "change.diff" if config.dry_run else "pages.json, pages.md, change.diff"
    print_results(*report.sentences(results), *notes, f"written to {config.out}: {written}")
    return int(len(answered) < len(results.rows))


main = command(PagesConfig, _run, program="shop-r1 ab pages")

if __name__ == "__main__":
    sys.exit(main())
