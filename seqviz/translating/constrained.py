"""Search for outputs that hold given words: beam search with a beam for each stage on the way to them.

Probable beginnings seldom hold the words, and those that hold them are seldom probable: in one beam the first
would crowd out the second. So beginnings compete only with those that need as many more pieces as they do
(Hokamp & Liu 2017 and Post & Vilar 2018 count the pieces that are met). No beginning is kept that cannot
come to its end in time.

Shapes: `N` beginnings, `V` vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from seqviz.architectures.steps import Stepper
from seqviz.translating.search import Hypothesis, Ranking, Rules
from seqviz.translating.words import Watch


class _Beginning(NamedTuple):
    ids: tuple[int, ...] = ()
    log_probs: tuple[float, ...] = ()
    state: int = Watch.START

    @property
    def total(self) -> float:
        return sum(self.log_probs)


@torch.inference_mode()
def n_best(
    stepper: Stepper,
    input_ids: Tensor,
    attention_mask: Tensor,
    limit: int,
    *,
    words: Watch,
    bad_words: Watch | None,
    ranking: Ranking,
    start_token_id: int,
    forbidden_token_ids: tuple[int, ...],
    prefix: tuple[int, ...] = (),
    rationed_token_id: int | None = None,
    ration: int = 0,
) -> list[Hypothesis]:
    """The best ended outputs of one sentence that hold all words.

    At every step as many probable beginnings as beams are kept for each number of pieces that they
    still need. Otherwise as `search.n_best`.

    Args:
        input_ids, attention_mask: of one sentence, (1, S).
        limit: most target tokens, at least ``words.needs()[words.START]``.
        words: that every output holds.
        prefix: as of `search.greedy`.
        ration: of `rationed_token_id`.
    Returns:
        the best first; none only where `bad_words` or `prefix` leave no way.
    """
    device = input_ids.device
    state = stepper.start(input_ids, attention_mask, limit)
    rules = Rules(
        [limit - 1],  # the last token is the end: a bad word must not be complete before it
        device,
        forbidden_token_ids=forbidden_token_ids,
        prefix=prefix,
        rationed_token_id=rationed_token_id,
        rations=[ration],
        bad_words=bad_words,
    )
    beginnings = [_Beginning()]
    tokens = torch.tensor([start_token_id], device=device)
    found: list[Hypothesis] = []
    for step in range(limit):
        log_probs = rules.log_probs(stepper.step(tokens, state), step).cpu()  # (N, V)
        after = torch.stack([words.after(one.state) for one in beginnings])  # (N, V)
        needs = words.needs()[after]
        log_probs.masked_fill_(needs > limit - step - 1, float("-inf"))
        totals = log_probs + torch.tensor([[one.total] for one in beginnings])

        rows: list[int] = []
        going_on: list[_Beginning] = []
        for need in needs[needs < limit - step].unique().tolist():
            for row, token in _best(
                totals.masked_fill(needs != need, float("-inf")), ranking.num_beams
            ):
                before, value = beginnings[row], float(log_probs[row, token])
                longer = _Beginning(
                    (*before.ids, token), (*before.log_probs, value), int(after[row, token])
                )
                if need == 0:
                    found.append(Hypothesis(longer.ids, longer.log_probs, True))
                else:
                    rows.append(row)
                    going_on.append(longer)
        found = ranking.best_of(found)
        best = max((one.total for one in going_on), default=float("-inf"))
        if ranking.is_done(found, best, step + 1):
            break
        kept = torch.tensor(rows, device=device)
        stepper.select(state, kept, same_sources=len(rows) == len(beginnings))
        tokens = torch.tensor([one.ids[-1] for one in going_on], device=device)
        rules.follow(tokens, kept)
        beginnings = going_on
    return found[: ranking.num_results]


def _best(totals: Tensor, count: int) -> list[tuple[int, int]]:
    """Rows and columns of the `count` largest values of `totals` (N, V) that are finite, the largest first."""
    top, flat = totals.flatten().topk(min(count, totals.numel()))
    places = flat[torch.isfinite(top)].tolist()
    return [divmod(place, totals.shape[1]) for place in places]
