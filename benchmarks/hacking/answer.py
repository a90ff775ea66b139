"""What the figures say, in sentences: each is put together from them, and says the opposite where they do.

record.py ─► answer ─► hacking.md, the terminal
"""

from collections.abc import Iterator, Sequence

from benchmarks.hacking.earned import Earned
from benchmarks.hacking.leaving import CODES, DARS, RIGHT, Leaving, Swept
from benchmarks.hacking.mixes import PAPER_ROWS, Mix
from benchmarks.hacking.record import Arithmetic, OfStore

__all__ = ["answer"]

PRESETS_OF_DARS = ("no_dars", "shop_r1")
TAU = 0.75


def answer(store: OfStore, found: Arithmetic) -> list[str]:
    """When scaling makes terminate spam uneconomical and when not, and what is paid in its place."""
    mix = found.mixes[0]
    return [
        _verdict(found),
        *(_raw(found, mix), _grpo(found, mix), _exact_rewards(found, mix)),
        *_customer(found, mix),
        *_in_its_place(found, mix),
        *_surer(found, mix),
        _certainty(found),
        _papers_own(found, mix),
        *_on_this_store(store),
    ]


def _verdict(found: Arithmetic) -> str:
    same = _same(found)
    in_groups, raw = _moved(found.by_scale, grpo=True), _moved(found.by_scale, grpo=False)
    where = f"over DARS {DARS[0]:g} to {DARS[-1]:g}, every τ, mix and chance of a right guess that was looked at"
    if in_groups < same <= raw:
        return (
            f"**When the paper's scaling makes terminate spam uneconomical, and when not.** It does where rewards are "
            f"compared as they are: there it moves the belief from which on leaving pays by up to {raw:.2f}. It does "
            f"not under GRPO, which divides by the group's deviation: the belief from which on a policy that always "
            f"leaves stays so moves by at most {in_groups:.2f} {where}. In a group the logged action is one and the "
            "same, so the order of the rewards decides between leaving and another answer, not how far they lie apart."
        )
    if in_groups < same:
        return f"**Scaling makes no difference to terminate spam**, neither to raw rewards nor to GRPO, {where}."
    return (
        f"**Scaling moves the belief from which on leaving is GRPO's end by up to {in_groups:.2f}** (raw rewards: "
        f"{raw:.2f}) {where}."
    )


def _moved(rows: Sequence[Leaving], *, grpo: bool) -> float:
    """How far DARS alone moves a belief, at most."""
    beliefs: dict[tuple[str, float, int], list[float]] = {}
    for row in rows:
        for place, belief in enumerate(row.leaves_from if grpo else row.paid_from):
            known = 1.0 if belief is None else belief
            beliefs.setdefault((row.mix, row.threshold, place), []).append(known)
    return max(max(one) - min(one) for one in beliefs.values())


def _raw(found: Arithmetic, mix: Mix) -> str:
    without, scaled = (_leaving(found, mix, name, "none") for name in PRESETS_OF_DARS)
    worth = found.worth_leaving_from[mix.name]
    starved = scaled.paid_from[0] - worth[0]
    text = (
        f"*Raw rewards* (and GRPO without the division, Dr. GRPO): among the clicks and texts of {mix.name}, with a "
        f"best guess that is right at {_percent(RIGHT[0])}, leaving pays most from a belief of "
        f"{without.paid_from[0]:.3f} on with DARS 1 and from {scaled.paid_from[0]:.3f} on with DARS 1000; it is right "
        f"most often from {worth[0]:.3f} on."
    )
    if starved > _same(found):
        text += (
            " So scaling also makes it uneconomical to leave where the shopper does: who maximises this reward goes on "
            f"until {_percent(scaled.paid_from[0])} sure."
        )
    return text


def _grpo(found: Arithmetic, mix: Mix) -> str:
    row = _leaving(found, mix, "shop_r1", "group")
    q = mix.clicks_among_others
    more = max(q, 1 - q)
    border, belief = more / (1 + more), row.leaves_from[0]
    if belief is None:
        return f"*GRPO with group deviations* under `shop_r1` leaves spam at every belief below {found.beliefs[-1]:g}."
    agrees = all(one is not None and abs(one - border) <= _same(found) for one in row.leaves_from)
    text = (
        f"*GRPO with group deviations* ends in leaving under `shop_r1` from a belief of {belief:.2f} on "
        f"({mix.name}: {_percent(mix.leaving)} leave)."
    )
    if agrees:
        text += (
            f" That is where leaving becomes likelier than the commoner of clicking and typing ({border:.2f}), however "
            "rarely a guess is right: what drives spam out is the reward for the type of action, not the scale."
        )
    return text


def _exact_rewards(found: Arithmetic, mix: Mix) -> str:
    row = _leaving(found, mix, "binary", "group")
    worth = found.worth_leaving_from[mix.name]
    pairs = list(zip(row.leaves_from, worth, strict=True))
    follows = all(belief is not None and abs(belief - one) <= _same(found) for belief, one in pairs)
    at = ", ".join(f"{_belief(belief)} at {_percent(p)}" for belief, p in zip(row.leaves_from, RIGHT, strict=True))
    text = f"*Rewards of exact matches* (`binary`): GRPO ends in leaving from a belief of {at} right guesses on"
    if not follows:
        return text + "; leaving is right most often from " + ", ".join(f"{one:.2f}" for one in worth) + " on."
    spams = [p for p, one in zip(RIGHT, worth, strict=True) if mix.leaving > one]
    text += ", which is where leaving is right most often: no more is paid than it is worth."
    if spams:
        text += (
            f" In {mix.name} as a whole that is so up to {_percent(max(spams))} right guesses: there terminate spam is "
            "what exact accuracy itself asks for."
        )
    return text


def _customer(found: Arithmetic, mix: Mix) -> Iterator[str]:
    row = _leaving(found, mix, "customer_r1", "group")
    worth = found.worth_leaving_from[mix.name]
    early = [
        f"{_belief(belief)} on at p {p:g} ({one:.2f})"
        for p, belief, one in zip(RIGHT, row.leaves_from, worth, strict=True)
        if belief is not None and belief < one - _same(found)
    ]
    if early:
        yield (
            f"*Customer-R1's weights* of 1000 and 2000 cancel in the same way, and its -1 for a wrong click does not: "
            f"in {mix.name} GRPO ends in leaving from a belief of {', '.join(early)}, in parentheses from where "
            "leaving is right most often: spam that pays."
        )


def _in_its_place(found: Arithmetic, mix: Mix) -> Iterator[str]:
    def row(threshold: float) -> Swept:
        return next(
            one
            for one in found.swept
            if (one.mix, one.dars, one.threshold, one.scale) == (mix.name, 1000.0, threshold, "group")
        )

    invented = [p for p, code in zip(found.grid, row(TAU).ends, strict=True) if code == CODES["invented"]]
    if not invented:
        yield f"*In its place* no name off the page: begun from spam in {mix.name}, GRPO at τ {TAU:g} never ends there."
        return
    text = (
        f"*In its place* another spam pays: in {mix.name}, begun from 99% leaving, GRPO at τ {TAU:g} ends in a name "
        f"made of the words that the page's names share (it need not be on the page) for guesses right at up to "
        f"{_percent(max(invented))}."
    )
    closed = sorted(
        one.threshold
        for one in found.swept
        if (one.mix, one.dars, one.scale) == (mix.name, 1000.0, "group") and CODES["invented"] not in one.ends
    )
    if closed:
        text += f" A threshold of {min(closed):g} ends that."
    yield text


def _surer(found: Arithmetic, mix: Mix) -> Iterator[str]:
    def leaves(drop: bool) -> float | None:
        return next(
            one.leaves_from[0]
            for one in found.surer
            if (one.mix, one.reward, one.drop_equal) == (mix.name, "shop_r1", drop)
        )

    kept, dropped = leaves(False), leaves(True)
    if kept is not None and (dropped is None or dropped - kept > _same(found)):
        yield (
            f"*Groups that teach nothing*: where they are kept, a rationale of leaving that is 1 nat surer than others "
            f"(worth 0.005 points) lowers the belief from which on GRPO ends in leaving from {_belief(dropped)} to "
            f"{_belief(kept)} in {mix.name}, since the division blows it up to the size of a right answer; leaving out "
            "groups of equal action rewards prevents that. (This is the limit in which an answer's rationales are all "
            "as sure; noise among them weakens it.)"
        )


def _certainty(found: Arithmetic) -> str:
    reached = [one for one in found.certainty if one.gap is not None]
    never = sorted({one.definition for one in found.certainty} - {one.definition for one in reached})
    told = [one for one in reached if one.vocabulary == max(row.vocabulary for row in found.certainty)]
    text = "*Self-certainty alone*: "
    for definition in dict.fromkeys(one.definition for one in told):
        of_it = sorted((one for one in told if one.definition == definition), key=lambda one: one.points)
        text += (
            f"α · `{definition}` is worth "
            + ", ".join(
                f"the reward for {one.prize} ({one.points:g}) once a token's logit lies {one.gap:.0f} above all others "
                f"(10^{one.rest:.0f} left for them)"
                for one in of_it
            )
            + f", of {of_it[0].vocabulary:,} tokens; "
        )
    if never:
        text += f"{' and '.join(f'`{name}`' for name in never)} never {'is' if len(never) == 1 else 'are'}"
    return text.removesuffix("; ") + "."


def _papers_own(found: Arithmetic, mix: Mix) -> str:
    """Beside the paper's tables: what always leaving gets on its test set."""
    rows = ", ".join(f"{label} {exact:.2f} and {f1:.2f}" for label, (exact, f1) in PAPER_ROWS.items())
    exact, f1 = 100 * mix.leaving, 100 * mix.f1_of_leaving
    best_exact, best_f1 = PAPER_ROWS["Shop-R1"]
    text = (
        f"*The paper's own figures*: on its test set always leaving has an exact accuracy of {exact:.2f} and a "
        f"macro-F1 of {f1:.2f}, in percent; it reports {rows}. So spam lies {best_exact - exact:.2f} points below "
        f"`shop_r1` in exact accuracy and {best_f1 - f1:.2f} in macro-F1."
    )
    if all(belief is None or belief > mix.leaving for belief in _leaving(found, mix, "no_dars", "group").leaves_from):
        text += (
            " That training without the scale ends in spam does not follow from this arithmetic: a policy that cannot "
            "tell one state from another would be led away from leaving with DARS 1 as with 1000, so what the ablation "
            "saw has another cause (how advantages were scaled, states in which leaving is likely, the optimiser)."
        )
    return text


def _on_this_store(store: OfStore) -> Iterator[str]:
    trivial = [one for one in store.earned if one.trivial]
    spam = next(one for one in trivial if one.label == "always_terminate")
    yield (
        f"*On this store* ({store.steps:,} steps of {store.users} people) always leaving is right at "
        f"{_percent(spam.worth['exact_accuracy'].value)} and earns {_share(spam, 'shop_r1')} of what replaying the log "
        f"earns under `shop_r1`, {_share(spam, 'no_dars')} under `no_dars`, {_share(spam, 'binary')} under `binary`."
    )
    best = max(trivial, key=lambda one: one.paid["shop_r1"].reward.value)
    yield (
        f"Of the policies that know nothing `shop_r1` pays `{best.label}` most: "
        f"{best.paid['shop_r1'].reward.value:.1f} points a step, {_share(best, 'shop_r1')} of the log's, for an exact "
        f"accuracy of {_percent(best.worth['exact_accuracy'].value)}."
    )
    opposite = next(one for one in store.disagreements if (one.reward, one.worth) == ("shop_r1", "exact_accuracy"))
    count, pairs = len(opposite.opposite), sum(opposite.pairs.values())
    if count:
        worst = opposite.opposite[0]
        yield (
            f"Of {pairs} pairs of policies {count} are put in the opposite order of their exact accuracy by `shop_r1`, "
            f"both told apart; the most by `{worst.paid_more}` ({worst.reward.difference:+.1f} points "
            f"[{worst.reward.low:+.1f}, {worst.reward.high:+.1f}]) over `{worst.worth_more}`, which is right at "
            f"{-100 * worst.worth.difference:.1f} points more of the steps "
            f"[{-100 * worst.worth.high:.1f}, {-100 * worst.worth.low:.1f}]."
        )
    else:
        yield f"None of {pairs} pairs of policies is put in the opposite order of their exact accuracy by `shop_r1`."


def _same(found: Arithmetic) -> float:
    """Beliefs no further apart than this are one: two steps of those that are looked at."""
    return 2 * (found.beliefs[1] - found.beliefs[0])


def _leaving(found: Arithmetic, mix: Mix, reward: str, scale: str) -> Leaving:
    return next(one for one in found.leavings if (one.mix, one.reward, one.scale) == (mix.name, reward, scale))


def _share(one: Earned, reward: str) -> str:
    share = one.paid[reward].of_best
    return "–" if share is None else f"{100 * share:.2g}%"


def _belief(belief: float | None) -> str:
    return "none" if belief is None else f"{belief:.2f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%".replace(".0%", "%")
