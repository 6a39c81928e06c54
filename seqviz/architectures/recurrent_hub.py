"""What Transformers asks of the recurrent models: loading, saving, fresh weights, caches, outputs.

The models themselves stand in `recurrent` and `context`.

Shapes: `B` batch (times beams), `S` source length, `T` target length, `D` embedding width, `W` recurrent width,
`L` layers, `V` vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import GenerationMixin, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import Seq2SeqLMOutput, Seq2SeqModelOutput

from seqviz.architectures.context import Encoded, Prepared
from seqviz.architectures.manners import Manners, refuse_padding_before, source_mask
from seqviz.architectures.recurrent import (
    RecurrentDecoder,
    RecurrentEncoder,
    State,
    embedding,
    initialize_recurrence,
)
from seqviz.architectures.recurrent_config import RecurrentConfig

PAD_LOGIT = -1e4
"""Logit of the padding token: no probability, no gradient, and finite in every number format."""

Part = TypeVar("Part", bound=nn.Module)


@dataclass
class RecurrentCache:
    """What a decoder keeps between two steps of decoding.

    Attributes:
        state: of the decoder.
        prepared: what its context made of the source; the same at every step.
        length: decoder steps taken so far.
    """

    state: State
    prepared: Prepared
    length: int = 0

    is_compileable = False

    def get_seq_length(self, layer_idx: int = 0) -> int:
        """Decoder steps taken so far."""
        return self.length

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep the rows `beam_idx`, in that order: the beams that beam search goes on with."""
        hidden, cell = self.state
        self.state = State(
            hidden.index_select(0, beam_idx),
            None if cell is None else cell.index_select(0, beam_idx),
        )
        self.prepared = tuple(part.index_select(0, beam_idx) for part in self.prepared)


class RecurrentPreTrainedModel(PreTrainedModel):
    """Loading, saving and initialisation shared by the classes below."""

    config: RecurrentConfig
    config_class = RecurrentConfig
    base_model_prefix = "model"
    supports_gradient_checkpointing = True

    @classmethod
    def _supports_default_dynamic_cache(cls) -> bool:
        return False

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        if isinstance(module, nn.RNNBase):
            initialize_recurrence(module, self.config.forget_bias)
        elif isinstance(module, nn.Linear):
            init.xavier_uniform_(module.weight)
            if module.bias is not None:
                init.zeros_(module.bias)
        elif isinstance(module, nn.Embedding):
            table = torch.randn(module.weight.shape) * self.config.init_std
            if module.padding_idx is not None:
                table[module.padding_idx] = 0
            init.copy_(module.weight, table)
        elif isinstance(module, RecurrentForConditionalGeneration):
            bias = torch.zeros(1, self.config.vocab_size)
            bias[0, self.config.pad_token_id] = PAD_LOGIT
            init.copy_(module.final_logits_bias, bias)

    def _fresh(self, part: Part) -> Part:
        """Draw the weights of a part as soon as it is made, so that what follows draws after it.

        A model that is being loaded has no weights yet and draws none.
        """
        if not any(parameter.is_meta for parameter in part.parameters()):
            part.apply(self._initialize_weights)
        return part


class RecurrentModel(RecurrentPreTrainedModel):
    """Encoder and decoder over one embedding table."""

    _tied_weights_keys = {
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
    }

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.shared = embedding(config)
        self.encoder = self._fresh(RecurrentEncoder(config))
        self.decoder = self._fresh(RecurrentDecoder(config))
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.shared

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.shared = value
        self.encoder.set_submodule("embed_tokens", value)
        self.decoder.set_submodule("embed_tokens", value)

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: Encoded | None = None,
        cache: RecurrentCache | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        use_cache: bool = False,
        output_attentions: bool = False,
        output_hidden_states: bool = False,
        **kwargs: Any,
    ) -> Seq2SeqModelOutput:
        """Read the source and run target tokens through the decoder.

        Args: as `RecurrentForConditionalGeneration.forward`.
        Returns:
            ``last_hidden_state``: what the output layer reads, (B, T, D).
        """
        if encoder_outputs is None and attention_mask is None:
            source = input_ids if inputs_embeds is None else inputs_embeds
            attention_mask = source_mask(source, None, self.config.pad_token_id)
        encoded: Encoded = (
            self.encoder(
                input_ids=input_ids,
                attention_mask=attention_mask,
                inputs_embeds=inputs_embeds,
                output_hidden_states=output_hidden_states,
            )
            if encoder_outputs is None
            else encoder_outputs
        )
        if attention_mask is None:
            raise ValueError(
                "expected attention_mask beside encoder_outputs, got none; pass the source's"
            )
        target = decoder_input_ids if decoder_inputs_embeds is None else decoder_inputs_embeds
        if target is None:
            raise ValueError("expected decoder_input_ids or labels, got neither")
        if decoder_attention_mask is not None:
            refuse_padding_before(decoder_attention_mask, "target")
        vector = encoded.vector
        assert vector is not None  # the encoder always gives one
        if cache is None:
            state = self.decoder.start(vector)
            prepared = self.decoder.context.prepare(encoded, attention_mask.bool())
            cache = RecurrentCache(state, prepared)
        found = self.decoder(
            decoder_input_ids, vector, cache.state, cache.prepared, decoder_inputs_embeds
        )
        steps = cache.length + target.shape[1]
        weights = found.weights if output_attentions else None
        # Transformers names its own class of caches here, and asks for the methods of one alone.
        kept: Any = RecurrentCache(found.state, cache.prepared, steps) if use_cache else None
        return Seq2SeqModelOutput(
            last_hidden_state=found.output,
            decoder_hidden_states=(found.states,) if output_hidden_states else None,
            cross_attentions=None if weights is None else (weights.unsqueeze(1),),
            encoder_last_hidden_state=encoded.last_hidden_state,
            encoder_hidden_states=encoded.hidden_states,
            cache=kept,
        )


class RecurrentForConditionalGeneration(Manners, RecurrentPreTrainedModel, GenerationMixin):
    """The translator: `RecurrentModel` and the tied output layer."""

    _tied_weights_keys = {
        "lm_head.weight": "model.shared.weight",
        "model.encoder.embed_tokens.weight": "model.shared.weight",
        "model.decoder.embed_tokens.weight": "model.shared.weight",
    }

    final_logits_bias: Tensor

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.model = RecurrentModel(config)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.register_buffer("final_logits_bias", torch.zeros(1, config.vocab_size))
        self.post_init()

    @property
    def looks_back(self) -> bool:
        """The decoder chooses anew at every step what it sees of the source."""
        return self.model.decoder.context.looks_back

    @property
    def has_one_vector(self) -> bool:
        """The decoder sees the source through one fixed vector and nothing else."""
        return self.model.decoder.context.has_one_vector

    def get_encoder(self, modality: str | None = None) -> RecurrentEncoder:
        return self.model.encoder

    def get_decoder(self) -> RecurrentDecoder:
        return self.model.decoder

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: Encoded | None = None,
        cache: RecurrentCache | None = None,
        labels: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        decoder_inputs_embeds: Tensor | None = None,
        decoder_attention_mask: Tensor | None = None,
        num_items_in_batch: Tensor | int | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput | tuple[Tensor, ...]:
        """Score target tokens.

        Args:
            input_ids: source, (B, S), padding at the end; or give `encoder_outputs`.
            attention_mask: 1 where a source token is real, (B, S); None: every token but padding is.
            decoder_input_ids: previous target tokens, (B, T); made from `labels` if missing.
            encoder_outputs: what the encoder returned for this source.
            cache: decoder state after the tokens before `decoder_input_ids`.
            labels: target tokens, (B, T), -100 at padding; gives the mean loss in nats a token.
            inputs_embeds: scaled source embeddings in place of `input_ids`, (B, S, D).
            decoder_inputs_embeds: scaled embeddings in place of `decoder_input_ids`, (B, T, D).
            decoder_attention_mask: 1 where a target token is real, (B, T); only looked at, for padding at the end.
            num_items_in_batch: target tokens of the whole batch of which this is a part, as the Trainer counts
                them; the loss is then this part's share of the whole batch's mean.
        Returns:
            logits (B, T, V); `cross_attentions` one (B, 1, T, S) if asked for and there are any.
        Raises:
            ValueError: no source or target, encoder outputs without a mask, or padding before a real token.
        """
        if decoder_input_ids is None and decoder_inputs_embeds is None and labels is not None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        keep = self.config.use_cache if use_cache is None else use_cache
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            encoder_outputs=encoder_outputs,
            cache=cache,
            inputs_embeds=inputs_embeds,
            decoder_inputs_embeds=decoder_inputs_embeds,
            decoder_attention_mask=decoder_attention_mask,
            use_cache=keep and labels is None,
            output_attentions=bool(output_attentions),
            output_hidden_states=bool(output_hidden_states),
        )
        logits = self.lm_head(outputs.last_hidden_state) + self.final_logits_bias  # (B, T, V)
        loss = None
        if labels is not None:
            scores, right = logits.flatten(0, 1).float(), labels.flatten()
            if num_items_in_batch is None:
                loss = functional.cross_entropy(scores, right)
            else:
                loss = functional.cross_entropy(scores, right, reduction="sum") / num_items_in_batch
        rest = {key: value for key, value in outputs.items() if key != "last_hidden_state"}
        result = Seq2SeqLMOutput(loss=loss, logits=logits, **rest)
        return result if return_dict is not False else result.to_tuple()
