"""Recurrent sequence-to-sequence models: tanh RNN or LSTM, one fixed vector or attention.

One class with two switches. ``cell`` says how a state is updated, ``context`` what the output layer
reads beside the state: the one fixed vector v ("fixed"), Σ_j α_ij h_j chosen anew at every step
("attention"), or the plain mean of the memory ("mean"). All else is the same.

    memory h, v  = encode(source)          v = tanh(W [last forward state; first backward state])
    s_0          = projection of v         for every decoder layer
    s_i          = recur(s_{i-1}, E y_{i-1} + V v)
    logits_i     = E tanh(W_o [s_i; c_i])  E is the one embedding table of source, target and output

Sources: Sutskever et al. 2014 and Cho et al. 2014 (fixed vector), Bahdanau et al. 2015 (attention),
Luong et al. 2015, equation 5 (output layer).

Shapes: `B` batch, `S` source length, `T` target length, `D` embedding width, `W` recurrent width,
`L` layers, `A` attention width, `V` vocabulary.
"""

# No postponed annotations in this file: `strict` checks types that are types, not strings.

import math
from dataclasses import dataclass
from typing import Any

import torch
from huggingface_hub.dataclasses import strict
from torch import Tensor, nn
from torch.nn import functional
from transformers import GenerationMixin, PreTrainedConfig, PreTrainedModel
from transformers import initialization as init
from transformers.modeling_outputs import ModelOutput, Seq2SeqLMOutput, Seq2SeqModelOutput

from seqviz.architectures.attention import AdditiveAttention, mean_context
from seqviz.architectures.cache import RecurrentCache

CELLS = ("lstm", "rnn")
CONTEXTS = ("fixed", "attention", "mean")

PAD_LOGIT = -1e4
"""Logit of the padding token: no probability, no gradient, and finite in every number format."""


@strict
class RecurrentConfig(PreTrainedConfig):
    """Settings of a recurrent model.

    Args:
        vocab_size: pieces, the last of which is padding.
        d_model: embedding width.
        width: recurrent width of the decoder; the encoder has half of it in each direction.
        num_layers: of the encoder and of the decoder.
        cell: one of `CELLS`.
        context: one of `CONTEXTS`.
        vector_size: width of the fixed vector v.
        attention_size: width of additive attention.
        forget_bias: of the LSTM's forget gates at the start.
    Raises:
        ValueError: a switch with an unknown value, a width that cannot be halved, or no layer.
    """

    model_type = "seqviz-recurrent"
    keys_to_ignore_at_inference = ["cache"]
    attribute_map = {"hidden_size": "width", "num_hidden_layers": "num_layers"}

    vocab_size: int = 8000
    d_model: int = 256
    width: int = 448
    num_layers: int = 2
    cell: str = "lstm"
    context: str = "attention"
    vector_size: int = 448
    attention_size: int = 128
    forget_bias: float | int = 1.0
    init_std: float = 0.02
    use_cache: bool = True
    is_encoder_decoder: bool = True
    tie_word_embeddings: bool = True
    pad_token_id: int | None = 7999
    bos_token_id: int | None = None
    eos_token_id: int | list[int] | None = 0
    decoder_start_token_id: int | None = 7999

    def __post_init__(self, **kwargs: Any) -> None:
        if self.cell not in CELLS:
            raise ValueError(f"expected cell to be one of {', '.join(CELLS)}, got {self.cell!r}")
        if self.context not in CONTEXTS:
            raise ValueError(
                f"expected context to be one of {', '.join(CONTEXTS)}, got {self.context!r}"
            )
        if self.width % 2:
            raise ValueError(
                f"expected an even width (half for each direction), got {self.width}; "
                f"try {self.width + 1}"
            )
        if self.num_layers < 1:
            raise ValueError(f"expected num_layers of 1 or more, got {self.num_layers}")
        super().__post_init__(**kwargs)


@dataclass
class RecurrentEncoderOutput(ModelOutput):
    """What the encoder tells the decoder.

    Attributes:
        last_hidden_state: memory, top encoder states, (B, S, W).
        vector: the one fixed vector v, (B, vector_size).
        hidden_states: embeddings and the states of every layer, each (B, S, D or W), if asked for.
        attentions: always None; the field is expected by generation code.
    """

    last_hidden_state: Tensor | None = None
    vector: Tensor | None = None
    hidden_states: tuple[Tensor, ...] | None = None
    attentions: tuple[Tensor, ...] | None = None


def recurrence(cell: str, input_size: int, width: int, num_layers: int = 1) -> nn.RNNBase:
    """A fused recurrent layer.

    "rnn": h_t = tanh(W_h h_{t-1} + W_x x_t + b). "lstm": Hochreiter & Schmidhuber 1997 with forget
    gates (Gers et al. 2000), without peepholes.
    """
    kind = {"lstm": nn.LSTM, "rnn": nn.RNN}[cell]
    return kind(input_size, width, num_layers=num_layers, batch_first=True)


def initialize_recurrence(layer: nn.RNNBase, forget_bias: float) -> None:
    """Input weights Glorot, recurrent weights orthogonal, gate by gate; biases 0, forget gate apart."""
    gates = 4 if isinstance(layer, nn.LSTM) else 1
    for name, parameter in layer.named_parameters():
        if name.startswith("weight"):
            blocks = []
            for _ in range(gates):
                block = torch.empty(layer.hidden_size, parameter.shape[1])
                fill = nn.init.orthogonal_ if "weight_hh" in name else nn.init.xavier_uniform_
                blocks.append(fill(block))
            init.copy_(parameter, torch.cat(blocks))
        else:
            bias = torch.zeros(gates, layer.hidden_size)
            if gates == 4 and "bias_ih" in name:
                bias[1] = forget_bias  # PyTorch's order of gates: input, forget, cell, output
            init.copy_(parameter, bias.flatten())


def reversal(lengths: Tensor, size: int) -> Tensor:
    """Positions that reverse each row within its own length and leave its padding in place.

    Args:
        lengths: real tokens of each row, (B,).
        size: padded length S.
    Returns:
        index (B, S); applying it twice gives the row back.
    """
    position = torch.arange(size, device=lengths.device).unsqueeze(0)  # (1, S)
    mirrored = lengths.unsqueeze(1) - 1 - position  # (B, S)
    return torch.where(mirrored >= 0, mirrored, position)


def _gather(states: Tensor, index: Tensor) -> Tensor:
    return states.gather(1, index.unsqueeze(-1).expand(-1, -1, states.shape[-1]))


class RecurrentPreTrainedModel(PreTrainedModel):
    """Loading, saving and initialisation shared by the classes below."""

    config: RecurrentConfig
    config_class = RecurrentConfig
    base_model_prefix = "model"

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


class RecurrentEncoder(RecurrentPreTrainedModel):
    """Bidirectional recurrent encoder.

    Each direction of a layer is one call; the backward one reads every sentence reversed within its
    own length. Padding stays at the end in both, so it never touches a real state.
    """

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(
            config.vocab_size, config.d_model, padding_idx=config.pad_token_id
        )
        self.embed_scale = math.sqrt(config.d_model)
        sizes = [config.d_model] + [config.width] * (config.num_layers - 1)
        half = config.width // 2
        self.forward_layers = nn.ModuleList(recurrence(config.cell, size, half) for size in sizes)
        self.backward_layers = nn.ModuleList(recurrence(config.cell, size, half) for size in sizes)
        self.to_vector = nn.Linear(config.width, config.vector_size)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embed_tokens

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        output_hidden_states: bool = False,
        **kwargs: Any,
    ) -> RecurrentEncoderOutput:
        """Read the source.

        Args:
            input_ids: (B, S), padding at the end.
            attention_mask: 1 where a source token is real, (B, S).
            inputs_embeds: scaled embeddings in place of `input_ids`, (B, S, D).
            output_hidden_states: return the states of every layer.
        Raises:
            ValueError: no mask, a row with no real token, or padding before a real token.
        """
        if attention_mask is None:
            raise ValueError(
                "expected attention_mask, got none; pass the tokenizer's attention_mask, "
                "or ones where nothing is padded"
            )
        mask = attention_mask.bool()
        lengths = mask.sum(dim=1)  # (B,)
        if not self.training:
            if bool((lengths == 0).any()):
                raise ValueError(
                    "expected at least one real token in every source, got a row of padding"
                )
            if bool((mask[:, 1:] & ~mask[:, :-1]).any()):
                raise ValueError(
                    "expected padding at the end, got a real token after padding; pad right"
                )
        if inputs_embeds is None:
            inputs_embeds = self.embed_tokens(input_ids) * self.embed_scale
        states = inputs_embeds  # (B, S, D)
        all_states = [states]
        mirror = reversal(lengths, states.shape[1])  # (B, S)
        for forward_layer, backward_layer in zip(
            self.forward_layers, self.backward_layers, strict=True
        ):
            ahead, _ = forward_layer(states)  # (B, S, W/2)
            behind, _ = backward_layer(_gather(states, mirror))
            behind = _gather(behind, mirror)
            states = torch.cat([ahead, behind], dim=-1)  # (B, S, W)
            all_states.append(states)
        last = _gather(ahead, (lengths - 1).unsqueeze(1)).squeeze(1)  # (B, W/2)
        first = behind[:, 0]  # (B, W/2)
        vector = torch.tanh(self.to_vector(torch.cat([last, first], dim=-1)))  # (B, vector_size)
        return RecurrentEncoderOutput(
            last_hidden_state=states,
            vector=vector,
            hidden_states=tuple(all_states) if output_hidden_states else None,
        )


class RecurrentDecoder(RecurrentPreTrainedModel):
    """Recurrent decoder. One method serves a whole target (teacher forcing) and a single step."""

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.embed_tokens = nn.Embedding(
            config.vocab_size, config.d_model, padding_idx=config.pad_token_id
        )
        self.embed_scale = math.sqrt(config.d_model)
        self.vector_to_state = nn.Linear(config.vector_size, config.num_layers * config.width)
        self.vector_to_input = nn.Linear(config.vector_size, config.d_model, bias=False)
        self.recurrence = recurrence(config.cell, config.d_model, config.width, config.num_layers)
        self.attention = (
            AdditiveAttention(config.width, config.width, config.attention_size)
            if config.context == "attention"
            else None
        )
        context_size = config.vector_size if config.context == "fixed" else config.width
        self.combine = nn.Linear(config.width + context_size, config.d_model, bias=False)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.embed_tokens

    def start(self, encoder_outputs: RecurrentEncoderOutput) -> RecurrentCache:
        """The state before the first step: everything in it comes from the one vector v.

        An LSTM's cell is the projection of v, its state the tanh of it; a tanh RNN has the latter only.
        """
        assert encoder_outputs.vector is not None and encoder_outputs.last_hidden_state is not None
        projected = self.vector_to_state(encoder_outputs.vector)
        cell = projected.view(-1, self.config.num_layers, self.config.width)  # (B, L, W)
        keys = self.attention and self.attention.keys(encoder_outputs.last_hidden_state)
        return RecurrentCache(
            hidden=torch.tanh(cell),
            cell=cell if self.config.cell == "lstm" else None,
            keys=keys,
        )

    def forward(
        self,
        input_ids: Tensor,
        encoder_outputs: RecurrentEncoderOutput,
        source_mask: Tensor,
        cache: RecurrentCache | None = None,
    ) -> tuple[Tensor, RecurrentCache, Tensor | None, Tensor]:
        """Run target tokens through the decoder.

        Args:
            input_ids: previous target tokens, (B, T).
            encoder_outputs: memory (B, S, W) and vector.
            source_mask: true where a source token is real, (B, S).
            cache: state after the tokens before `input_ids`, or None at the start.
        Returns:
            output (B, T, D), the new cache, attention weights (B, T, S) or None, states (B, T, W).
        """
        memory, vector = encoder_outputs.last_hidden_state, encoder_outputs.vector
        assert memory is not None and vector is not None
        if cache is None:
            cache = self.start(encoder_outputs)
        embedded = self.embed_tokens(input_ids) * self.embed_scale  # (B, T, D)
        embedded = embedded + self.vector_to_input(vector).unsqueeze(1)
        # The fused layers want layers first; everywhere else the batch comes first.
        hidden = cache.hidden.transpose(0, 1).contiguous()
        if cache.cell is None:
            states, hidden = self.recurrence(embedded, hidden)  # (B, T, W), (L, B, W)
            cell = None
        else:
            cell = cache.cell.transpose(0, 1).contiguous()
            states, (hidden, cell) = self.recurrence(embedded, (hidden, cell))
        weights = None
        if self.attention is not None:
            assert cache.keys is not None
            context, weights = self.attention(states, cache.keys, memory, source_mask)
        elif self.config.context == "mean":
            context = mean_context(memory, source_mask).expand(-1, states.shape[1], -1)
        else:
            context = vector.unsqueeze(1).expand(-1, states.shape[1], -1)
        output = torch.tanh(self.combine(torch.cat([states, context], dim=-1)))  # (B, T, D)
        new_cache = RecurrentCache(
            hidden=hidden.transpose(0, 1),
            cell=None if cell is None else cell.transpose(0, 1),
            keys=cache.keys,
            length=cache.length + input_ids.shape[1],
        )
        return output, new_cache, weights, states


class RecurrentModel(RecurrentPreTrainedModel):
    """Encoder and decoder over one embedding table."""

    _tied_weights_keys = {
        "encoder.embed_tokens.weight": "shared.weight",
        "decoder.embed_tokens.weight": "shared.weight",
    }

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.shared = nn.Embedding(
            config.vocab_size, config.d_model, padding_idx=config.pad_token_id
        )
        self.encoder = RecurrentEncoder(config)
        self.decoder = RecurrentDecoder(config)
        self.post_init()

    def get_input_embeddings(self) -> nn.Module:
        return self.shared

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.shared = value
        self.encoder.embed_tokens = value
        self.decoder.embed_tokens = value

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: RecurrentEncoderOutput | None = None,
        cache: RecurrentCache | None = None,
        inputs_embeds: Tensor | None = None,
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
        if encoder_outputs is None:
            encoder_outputs = self.encoder(
                input_ids=input_ids,
                attention_mask=attention_mask,
                inputs_embeds=inputs_embeds,
                output_hidden_states=output_hidden_states,
            )
        if attention_mask is None:
            raise ValueError(
                "expected attention_mask beside encoder_outputs, got none; pass the source's"
            )
        if decoder_input_ids is None:
            raise ValueError("expected decoder_input_ids or labels, got neither")
        output, new_cache, weights, states = self.decoder(
            decoder_input_ids, encoder_outputs, attention_mask.bool(), cache
        )
        return Seq2SeqModelOutput(
            last_hidden_state=output,
            decoder_hidden_states=(states,) if output_hidden_states else None,
            cross_attentions=(weights.unsqueeze(1),)
            if output_attentions and weights is not None
            else None,
            encoder_last_hidden_state=encoder_outputs.last_hidden_state,
            encoder_hidden_states=encoder_outputs.hidden_states,
            **({"cache": new_cache} if use_cache else {}),
        )


class RecurrentForConditionalGeneration(RecurrentPreTrainedModel, GenerationMixin):
    """The translator: `RecurrentModel` and the tied output layer."""

    _tied_weights_keys = {
        "lm_head.weight": "model.shared.weight",
        "model.encoder.embed_tokens.weight": "model.shared.weight",
        "model.decoder.embed_tokens.weight": "model.shared.weight",
    }

    def __init__(self, config: RecurrentConfig) -> None:
        super().__init__(config)
        self.model = RecurrentModel(config)
        self.lm_head = nn.Linear(config.d_model, config.vocab_size, bias=False)
        self.register_buffer("final_logits_bias", torch.zeros(1, config.vocab_size))
        self.post_init()

    def get_encoder(self, modality: str | None = None) -> RecurrentEncoder:
        return self.model.encoder

    def get_decoder(self) -> RecurrentDecoder:
        return self.model.decoder

    def prepare_decoder_input_ids_from_labels(self, labels: Tensor) -> Tensor:
        """Decoder input for teacher forcing: labels moved right behind the start token, (B, T)."""
        return shift_right(
            labels,
            start_token_id=self.config.decoder_start_token_id,
            pad_token_id=self.config.pad_token_id,
        )

    def forward(
        self,
        input_ids: Tensor | None = None,
        attention_mask: Tensor | None = None,
        decoder_input_ids: Tensor | None = None,
        encoder_outputs: RecurrentEncoderOutput | None = None,
        cache: RecurrentCache | None = None,
        labels: Tensor | None = None,
        inputs_embeds: Tensor | None = None,
        use_cache: bool | None = None,
        output_attentions: bool | None = None,
        output_hidden_states: bool | None = None,
        return_dict: bool | None = None,
        **kwargs: Any,
    ) -> Seq2SeqLMOutput | tuple[Tensor, ...]:
        """Score target tokens.

        Args:
            input_ids: source, (B, S), padding at the end; or give `encoder_outputs`.
            attention_mask: 1 where a source token is real, (B, S); required.
            decoder_input_ids: previous target tokens, (B, T); made from `labels` if missing.
            encoder_outputs: what the encoder returned for this source.
            cache: decoder state after the tokens before `decoder_input_ids`.
            labels: target tokens, (B, T), -100 at padding; gives the mean loss in nats a token.
            inputs_embeds: scaled source embeddings in place of `input_ids`, (B, S, D).
        Returns:
            logits (B, T, V); `cross_attentions` one (B, 1, T, S) if asked for and there are any.
        Raises:
            ValueError: no mask, or nothing to decode.
        """
        if decoder_input_ids is None and labels is not None:
            decoder_input_ids = self.prepare_decoder_input_ids_from_labels(labels)
        keep = self.config.use_cache if use_cache is None else use_cache
        outputs = self.model(
            input_ids=input_ids,
            attention_mask=attention_mask,
            decoder_input_ids=decoder_input_ids,
            encoder_outputs=encoder_outputs,
            cache=cache,
            inputs_embeds=inputs_embeds,
            use_cache=keep and labels is None,
            output_attentions=bool(output_attentions),
            output_hidden_states=bool(output_hidden_states),
        )
        logits = self.lm_head(outputs.last_hidden_state) + self.final_logits_bias  # (B, T, V)
        loss = None
        if labels is not None:
            loss = functional.cross_entropy(logits.flatten(0, 1).float(), labels.flatten())
        rest = {key: value for key, value in outputs.items() if key != "last_hidden_state"}
        result = Seq2SeqLMOutput(loss=loss, logits=logits, **rest)
        return result if return_dict is not False else result.to_tuple()


def shift_right(labels: Tensor, *, start_token_id: int, pad_token_id: int) -> Tensor:
    """Labels moved one step right behind the start token, -100 replaced by padding, (B, T)."""
    shifted = labels.new_full(labels.shape, start_token_id)
    shifted[:, 1:] = labels[:, :-1]
    return shifted.masked_fill(shifted == -100, pad_token_id)
