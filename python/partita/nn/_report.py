# SPDX-License-Identifier: MIT
"""The report of `replace_`."""
import json
import typing

_COLUMNS = ("layer", "input", "taps", "call", "torch us", "partita us", "choice", "reason")


class Report(list[str]):
    """
    The names of the layers that Partita computes, and which library computes which convolutions of a model.

    Its text is a table: the calls of the example, or else those that the layers have measured so far.
    """

    def __init__(self, entries, whole=None, *, example):
        """Entries are (name, layer, whether it is replaced, reason)."""
        self._whole = whole
        self._entries = [(name, vars(layer).get("_choices"), replaced, reason)
                         for name, layer, replaced, reason in entries]
        super().__init__(name for name, choices, replaced, _ in self._entries
                         if replaced and (not example or choices is None or choices.is_any()))

    def to_dict(self) -> dict[str, typing.Any]:
        """
        The table.

        Returns
        -------
        dict
            "layers": a list with a dict for each layer and kind of its calls: "layer" (its name), "choice" ("torch",
            "partita", or "" if nothing has been decided), "reason", and of measured calls "torch_us" and "partita_us",
            the shortest times in microseconds, and "call", the kind. "model": likewise of the whole model, or None.
        """
        rows = []
        for name, choices, replaced, reason in self._entries:
            if choices is None:
                rows.append({"layer": name, "choice": "partita" if replaced else "torch", "reason": reason})
            elif not choices.rows:
                rows.append({"layer": name, "choice": "", "reason": "no call has been measured"})
            else:
                rows += [{"layer": name, **_row(decision), "call": json.loads(text)}
                         for text, decision in choices.rows.items()]
        return {"layers": rows, "model": self._whole and _row(self._whole)}

    def __repr__(self):
        table = self.to_dict()
        rows = [*table["layers"], *([{"layer": "model", **table["model"]}] if self._whole else [])]
        lines = [_COLUMNS, *map(_line, rows)]
        widths = [max(map(len, column)) for column in zip(*lines)]
        if not self._entries:
            return "no layer is a convolution of torch.nn, Conv1d to ConvTranspose3d (scripted models: replace_ before torch.jit)"
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _row(decision):
    reason = decision.reason or f"{decision.torch_us / decision.partita_us:.2f} times torch's speed"
    return {"choice": "partita" if decision.partita else "torch", "reason": reason,
            "torch_us": decision.torch_us, "partita_us": decision.partita_us}


def _line(row):
    times = [f"{row[name]:.0f}" if name in row else "" for name in ("torch_us", "partita_us")]
    call, shapes, kind = row.get("call"), ["", ""], ""
    if call:
        shapes = ["x".join(map(str, call[name])) for name in ("input", "taps")]
        kind = "training" if call["training"] else "gradients" if call["gradients"] else "inference"
        kind += f" {call['type']}, {call['format'].removesuffix('_format')}, threads: {call['threads'][0]}"
        kind += f", autocast to {call['autocast']}" if call["autocast"] else ""
    return (row["layer"] or '""', *shapes, kind, *times, row["choice"], row["reason"])
