"""Predicts by agents what a change of a shop's pages does to the next action.

  shop-r1 ab pages --store stores/mine --change change.toml \\
    --agents ngram,choice --out ab/mine --dry-run
  shop-r1 ab pages --store stores/mine --agents choice \\
    --change my_change.py:cheaper --placebo other_words.toml --out ab/cheaper \\
    --clicks "cart=*add_to_cart*" "banner=hero.*"

For any store, where `shop-r1 ab` knows the demo shop alone. A change is a file
of rules, or a function from the text of a simplified page to that of B:

  # change.toml; what a rule may do instead: hide = true, first = true,
  # scale_prices = 1.1
  [[rule]]
  select = "[name$=add_to_cart]"
  replace = { "Add to cart" = "Put it into my basket" }

At every logged step whose page it touches, agents are evaluated on the page as it
was (A) and as changed (B), after the same logged past and with the same seeds. The
answer is what they would do next (purchase, cart, other clicks, search, leave, or
what cannot be done there) and how far B shifts that, with intervals over users;
beside it what blank lines alone do (placebo). A change that touches nothing, or too
few users for any finding, is refused.

Writes pages.json, pages.md, change.diff (what B looks like) and the answers to OUT;
the same call goes on after a stop.
Exit codes: 0 done, 1 an agent gave no answer at all, 2 the call or its input was
wrong.
"""

import sys

import msgspec

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
            options = msgspec.to_builtins(config, enc_hook=str)
            made_with = provenance(options, store=SessionStore.open(config.store), seed=config.seed)
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
