"""Greedy search, sampling and beam search over a stepper, many sentences at once.

All are exact within their rule: a sentence's result does not depend on the others of its batch.
Finished sentences leave the batch, so that one long sentence does not make the short ones wait.

Shapes: `B` sentences, `K` beams, `N` rows (sentences times beams), `V` vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from seqviz.architectures.steps import Stepper
from seqviz.translating.words import Watch


@dataclass(frozen=True)
class Hypothesis:
    """One output.

    Attributes:
        ids: target token ids, with the end token if `finished`.
        log_probs: log-probability of each, in nats.
        finished: the end token was reached; otherwise the length limit was.
    """

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    finished: bool

    def score(self, length_penalty: float = 1.0) -> float:
        """Sum of log-probabilities over length ** `length_penalty`, nats."""
        return sum(self.log_probs) / max(1, len(self.ids)) ** length_penalty


class _Rations:
    """How often each row may still choose a token that is rationed; without one nothing is."""

    def __init__(self, token_id: int | None, left: Sequence[int], device: torch.device) -> None:
        self.token_id = token_id if any(left) else None
        self.left = torch.tensor(left, device=device)  # (N,)

    def close(self, log_probs: Tensor) -> None:
        """Rows whose ration is used up cannot choose the token: `log_probs` (N, V) in place."""
        if self.token_id is not None:
            log_probs[:, self.token_id].masked_fill_(self.left <= 0, float("-inf"))

    def follow(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        """The rows `rows`, all if None, have chosen `tokens`."""
        if self.token_id is not None:
            left = self.left if rows is None else self.left[rows]
            self.left = left - (tokens == self.token_id).long()

    def select(self, rows: Tensor) -> None:
        if self.token_id is not None:
            self.left = self.left[rows]


class _BadWords:
    """What each row has written, as far as words that it must not hold are concerned; None for no such words.

    Args:
        limits: most tokens of each row: where the text is cut, a word ends.
    """

    def __init__(self, watch: Watch | None, limits: Sequence[int]) -> None:
        self.watch = watch
        self.states = torch.full((len(limits),), Watch.START)
        self.left = torch.tensor(limits)

    def close(self, log_probs: Tensor) -> None:
        """No row can complete a word: `log_probs` (N, V) in place."""
        if self.watch is None:
            return
        after = torch.stack([self.watch.after(state) for state in self.states.tolist()])  # (N, V)
        held = self.watch.is_held()[after]
        last = self.left == 1
        held[last] = self.watch.would_be_held()[after[last]]
        log_probs.masked_fill_(held.to(log_probs.device), float("-inf"))

    def follow(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        if self.watch is None:
            return
        if rows is not None:
            self.select(rows)
        chosen = zip(self.states.tolist(), tokens.tolist(), strict=True)
        self.states = torch.tensor([int(self.watch.after(s)[token]) for s, token in chosen])
        self.left = self.left - 1

    def select(self, rows: Tensor) -> None:
        if self.watch is not None:
            self.states, self.left = self.states[rows.cpu()], self.left[rows.cpu()]


class Rules:
    """What each row may choose next.

    Args: as `greedy`, but for every row.
    """

    def __init__(
        self,
        limits: Sequence[int],
        device: torch.device,
        *,
        forbidden_token_ids: Sequence[int],
        prefix: Sequence[int] = (),
        rationed_token_id: int | None = None,
        rations: Sequence[int] = (),
        bad_words: Watch | None = None,
    ) -> None:
        used_up = rationed_token_id is not None and not any(rations)
        forbidden = [*forbidden_token_ids, rationed_token_id] if used_up else forbidden_token_ids
        self.forbidden = torch.tensor(forbidden, device=device)
        self.prefix = prefix
        self.rations = _Rations(rationed_token_id, rations, device)
        self.bad_words = _BadWords(bad_words, limits)

    def log_probs(self, logits: Tensor, step: int) -> Tensor:
        """Log-softmax (N, V) over the whole vocabulary; then what may not be chosen is -inf.

        Where a token is given by the prefix no other can be chosen; its value stays the model's own.
        """
        log_probs = (
            logits.float().log_softmax(dim=-1).index_fill_(-1, self.forbidden, float("-inf"))
        )
        self.rations.close(log_probs)
        self.bad_words.close(log_probs)
        if step >= len(self.prefix):
            return log_probs
        only = torch.full_like(log_probs, float("-inf"))
        only[:, self.prefix[step]] = log_probs[:, self.prefix[step]]
        return only

    def follow(self, tokens: Tensor, rows: Tensor | None = None) -> None:
        """The rows `rows`, all if None, have chosen `tokens`."""
        self.rations.follow(tokens, rows)
        self.bad_words.follow(tokens, rows)

    def select(self, rows: Tensor) -> None:
        self.rations.select(rows)
        self.bad_words.select(rows)


class Draws:
    """Tokens by chance: every sentence has a stream of numbers of its own.

    Args:
        seeds: whole numbers from 0 for each sentence; equal ones give equal streams.
        temperature: above 0; probabilities are taken to the power of 1 / `temperature`.
    """

    def __init__(self, seeds: Sequence[Sequence[int]], temperature: float) -> None:
        self.streams = [np.random.default_rng(list(seed)) for seed in seeds]
        self.temperature = temperature

    def choose(self, log_probs: Tensor) -> Tensor:
        """A token for each row of `log_probs` (N, V), by its probability among those that are possible."""
        values = log_probs.cpu().double()
        values = (values - values.max(dim=-1, keepdim=True).values) / self.temperature
        sums = values.exp().cumsum(dim=-1)
        draws = torch.tensor([[stream.random()] for stream in self.streams], dtype=torch.double)
        # The first whose sum is above the draw: never one that adds nothing.
        chosen = torch.searchsorted(sums, draws * sums[:, -1:], right=True)[:, 0]
        return chosen.to(log_probs.device)

    def select(self, rows: Tensor) -> None:
        self.streams = [self.streams[row] for row in rows.tolist()]


@torch.inference_mode()
def greedy(
    stepper: Stepper,
    input_ids: Tensor,
    attention_mask: Tensor,
    limits: Sequence[int],
    *,
    start_token_id: int,
    eos_token_id: int,
    forbidden_token_ids: Sequence[int],
    prefix: Sequence[int] = (),
    rationed_token_id: int | None = None,
    rations: Sequence[int] = (),
    bad_words: Watch | None = None,
    draws: Draws | None = None,
) -> list[Hypothesis]:
    """Take the most probable token at every step, or one by chance.

    Args:
        stepper: of the model.
        input_ids, attention_mask: sources, (B, S), padding at the end.
        limits: most target tokens of each sentence, (B,).
        forbidden_token_ids: never chosen (padding; unknown, unless it is rationed).
        prefix: tokens that every output begins with: no more than the limits, none of them forbidden
            or over a ration, the end token at most as the last one. They count like chosen ones.
        rationed_token_id: a token, not the end token, that no output holds more often than its
            sentence's part of `rations` says; None for no such token.
        rations: whole numbers from 0, (B,).
        bad_words: words that no output holds.
        draws: None for the most probable token.
    """
    device = input_ids.device
    state = stepper.start(input_ids, attention_mask, max(limits))
    rules = Rules(
        limits,
        device,
        forbidden_token_ids=forbidden_token_ids,
        prefix=prefix,
        rationed_token_id=rationed_token_id,
        rations=rations,
        bad_words=bad_words,
    )
    tokens = torch.full((len(limits),), start_token_id, device=device)
    alive = list(range(len(limits)))
    ids: list[list[int]] = [[] for _ in limits]
    log_probs: list[list[float]] = [[] for _ in limits]
    step = 0
    while alive:
        possible = rules.log_probs(stepper.step(tokens, state), step)
        if draws is None:
            best, tokens = possible.max(dim=-1)
        else:
            tokens = draws.choose(possible)
            best = possible.gather(-1, tokens[:, None])[:, 0]
        rules.follow(tokens)
        step += 1
        chosen = zip(alive, tokens.tolist(), best.tolist(), strict=True)
        rows = []
        for row, (sentence, token, value) in enumerate(chosen):
            ids[sentence].append(token)
            log_probs[sentence].append(value)
            if token != eos_token_id and len(ids[sentence]) < limits[sentence]:
                rows.append(row)
        if len(rows) < len(alive):
            alive = [alive[row] for row in rows]
            if alive:
                keep = torch.tensor(rows, device=device)
                tokens = tokens[keep]
                rules.select(keep)
                if draws is not None:
                    draws.select(keep)
                stepper.select(state, keep)
    return [
        Hypothesis(tuple(i), tuple(p), i[-1] == eos_token_id)
        for i, p in zip(ids, log_probs, strict=True)
    ]


def _hypothesis(ids: Tensor, cumulative: Tensor, finished: bool) -> Hypothesis:
    """An output (T,) of a beam from its sums of log-probabilities so far, (T,)."""
    values = cumulative.tolist()
    steps = [b - a for a, b in zip([0.0, *values[:-1]], values, strict=True)]
    return Hypothesis(tuple(ids.tolist()), tuple(steps), finished)


def _candidates(total: Tensor, eos_token_id: int) -> tuple[Tensor, ...]:
    """The best ways to go on or to end: of 2 K at most K end, so K beginnings always remain.

    Args:
        total: sum of log-probabilities of every beam with every token, (B, K, V).
    Returns:
        sums, the beams that they come from, their tokens, and whether they end, each (B, 2 K), the best
        first; places of the K among them that go on, (B, K), and where there are fewer, (B, K).
    """
    _, num_beams, vocabulary = total.shape
    count = min(2 * num_beams, num_beams * vocabulary)
    top, flat = total.flatten(1).topk(count, dim=-1)  # (B, 2 K)
    beams, top_tokens = flat // vocabulary, flat % vocabulary
    ends = top_tokens == eos_token_id
    # Rank of each candidate among those that go on.
    going_on = (~ends).cumsum(dim=-1)
    picked = torch.zeros_like(flat[:, :num_beams])
    places = (~ends & (going_on <= num_beams)).nonzero()
    picked[places[:, 0], going_on[places[:, 0], places[:, 1]] - 1] = places[:, 1]
    short = going_on[:, -1:] <= torch.arange(num_beams, device=total.device)  # fewer than K go on
    return top, beams, top_tokens, ends, picked, short


@dataclass(frozen=True)
class Ranking:
    """Which ended outputs are wanted, and how they are compared.

    Attributes:
        num_beams: so many are kept.
        num_results: so many are wanted, no more than beams.
        length_penalty: see `Hypothesis.score`.
        text_of: of outputs for which it is the same, only the best counts.
    """

    num_beams: int
    num_results: int = 1
    length_penalty: float = 1.0
    text_of: Callable[[tuple[int, ...]], Hashable] = tuple

    def best_of(self, found: Sequence[Hypothesis]) -> list[Hypothesis]:
        """Those that are kept, the best first."""
        texts: dict[Hashable, Hypothesis] = {}
        for one in sorted(found, key=lambda h: h.score(self.length_penalty), reverse=True):
            texts.setdefault(self.text_of(one.ids), one)
        return list(texts.values())[: self.num_beams]

    def is_done(self, best: Sequence[Hypothesis], total: float, length: int) -> bool:
        """Enough has ended, and no beginning scores above the last that is wanted; or none can go on.

        Args:
            best: ended outputs, from `best_of`.
            total: the largest sum of log-probabilities of the beginnings of `length` tokens.
        """
        if total == float("-inf"):
            return True
        if len(best) < self.num_beams:
            return False
        last = best[self.num_results - 1].score(self.length_penalty)
        return last >= total / length**self.length_penalty


class _Beams:
    """The beginnings of every sentence: sums of log-probabilities, (B, K), and how they came about.

    `ids` and `sums` hold tokens and sums so far of each, (B, K, T).
    """

    def __init__(self, sentences: int, num_beams: int, device: torch.device) -> None:
        # All beams of a sentence start alike: only the first may be continued in the first step.
        self.scores = torch.full((sentences, num_beams), float("-inf"), device=device)
        self.scores[:, 0] = 0.0
        self.ids = torch.empty(sentences, num_beams, 0, dtype=torch.long, device=device)
        self.sums = torch.empty(sentences, num_beams, 0, device=device)

    def lengthen(self, beams: Tensor, tokens: Tensor, scores: Tensor) -> None:
        """Every beam goes on from one of `beams` by one of `tokens`, all (B, K)."""
        self.scores = scores
        index = beams.unsqueeze(-1).expand(-1, -1, self.ids.shape[-1])
        self.ids = torch.cat([self.ids.gather(1, index), tokens.unsqueeze(-1)], dim=-1)
        self.sums = torch.cat([self.sums.gather(1, index), scores.unsqueeze(-1)], dim=-1)

    def ended(self, row: int, beam: int, token: Tensor, score: Tensor) -> Hypothesis:
        """A beginning and its end token, (1,)."""
        ids, sums = self.ids[row, beam], self.sums[row, beam]
        return _hypothesis(torch.cat([ids, token]), torch.cat([sums, score]), True)

    def unfinished(self, row: int, number: int) -> list[Hypothesis]:
        """The best beginnings of a sentence as they are."""
        best = self.scores[row].topk(number).indices.tolist()
        possible = [beam for beam in best if torch.isfinite(self.scores[row, beam])] or best[:1]
        return [_hypothesis(self.ids[row, b], self.sums[row, b], False) for b in possible]

    def select(self, rows: Tensor) -> None:
        self.scores, self.ids, self.sums = self.scores[rows], self.ids[rows], self.sums[rows]


def beam_search(
    *args: Any, num_beams: int, length_penalty: float = 1.0, **rules: Any
) -> list[Hypothesis]:
    """The best output of every sentence; see `n_best`."""
    ranking = Ranking(num_beams, length_penalty=length_penalty)
    return [found[0] for found in n_best(*args, ranking=ranking, **rules)]


@torch.inference_mode()
def n_best(
    stepper: Stepper,
    input_ids: Tensor,
    attention_mask: Tensor,
    limits: Sequence[int],
    *,
    ranking: Ranking,
    start_token_id: int,
    eos_token_id: int,
    rations: Sequence[int] = (),
    **rules: Any,
) -> list[list[Hypothesis]]:
    """Keep the most probable beginnings; return the best ended outputs.

    A sentence is done when it has as many ended outputs as beams and no beginning scores above the last
    that is wanted of them, or at its length limit; only where nothing has ended by then are beginnings
    returned, not `finished`.

    Args: as `greedy`, and
        rules: the others of `Rules`.
    Returns:
        for each sentence one or more, the best first.
    """
    device, num_beams, sentences = input_ids.device, ranking.num_beams, len(limits)
    state = stepper.start(input_ids, attention_mask, max(limits))
    stepper.select(state, torch.arange(sentences, device=device).repeat_interleave(num_beams))
    allowed = Rules(
        [limit for limit in limits for _ in range(num_beams)],
        device,
        rations=[ration for ration in rations for _ in range(num_beams)],
        **rules,
    )
    tokens = torch.full((sentences * num_beams,), start_token_id, device=device)
    beams = _Beams(sentences, num_beams, device)
    alive = list(range(sentences))
    ended: list[list[Hypothesis]] = [[] for _ in limits]
    step = 0
    while alive:
        log_probs = allowed.log_probs(stepper.step(tokens, state), step)  # (B K, V)
        step += 1
        total = beams.scores.unsqueeze(-1) + log_probs.view(len(alive), num_beams, -1)
        top, sources, top_tokens, ends, picked, short = _candidates(total, eos_token_id)
        ends_now = ends & torch.isfinite(top)
        ends_now[:, num_beams:] = False
        for row, place in ends_now.nonzero().tolist():
            here = slice(place, place + 1)
            beam = int(sources[row, place])
            ended[alive[row]].append(beams.ended(row, beam, top_tokens[row, here], top[row, here]))

        source_beams, next_tokens = sources.gather(1, picked), top_tokens.gather(1, picked)
        scores = top.gather(1, picked).masked_fill(short, float("-inf"))
        beams.lengthen(source_beams, next_tokens, scores)
        rows = []
        for row, best in enumerate(scores.max(dim=-1).values.tolist()):
            found, at_limit = ended[alive[row]], step >= limits[alive[row]]
            if not found and (at_limit or best == float("-inf")):
                found += beams.unfinished(row, ranking.num_results)
            found[:] = ranking.best_of(found)
            if not ranking.is_done(found, best, step) and not at_limit:
                rows.append(row)
        source_rows = source_beams + num_beams * torch.arange(len(alive), device=device)[:, None]
        same_sources = len(rows) == len(alive)
        if not same_sources:
            alive = [alive[row] for row in rows]
            keep = torch.tensor(rows, dtype=torch.long, device=device)
            source_rows, next_tokens = source_rows[keep], next_tokens[keep]
            beams.select(keep)
        if alive:
            stepper.select(state, source_rows.flatten(), same_sources=same_sources)
            tokens = next_tokens.flatten()
            allowed.follow(tokens, source_rows.flatten())
    return [found[: ranking.num_results] for found in ended]
