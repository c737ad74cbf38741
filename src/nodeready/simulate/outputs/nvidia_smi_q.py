"""The two documents of `nvidia-smi -q`, rendered from one tree."""

from __future__ import annotations

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

from nodeready.simulate.model import READ_AT
from nodeready.simulate.outputs.nvidia_smi import refusal
from nodeready.simulate.outputs.output import Output
from nodeready.simulate.outputs.smi_tree import gpu_fields

if TYPE_CHECKING:
    from nodeready.simulate.model import Gpu, Node
    from nodeready.simulate.outputs.smi_field import Field

    Trees = list[tuple[Gpu, tuple[Field, ...]]]

XML, TEXT = "nvidia-smi_-q_-x", "nvidia-smi_-q"
# the column of the colon in the text, and the document type of the XML, by driver branch
_COLUMNS = ((580, 55), (0, 42))
_DOCUMENT_TYPES = ((580, 13), (535, 12), (0, 11))


def documents(node: Node) -> dict[str, Output]:
    """`nvidia-smi -q -x` and `nvidia-smi -q`, by their evidence names."""
    refused = refusal(node)
    if refused is not None:
        return dict.fromkeys((XML, TEXT), refused)
    trees = [(gpu, gpu_fields(node, gpu, minor)) for minor, gpu in enumerate(node.listed_gpus)]
    return {XML: _xml(node, trees), TEXT: _text(node, trees)}


def _xml(node: Node, trees: Trees) -> Output:
    lines = [
        '<?xml version="1.0" ?>',
        f'<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{_by_branch(_DOCUMENT_TYPES, node)}.dtd">',
        "<nvidia_smi_log>",
        f"\t<timestamp>{READ_AT}</timestamp>",
        f"\t<driver_version>{node.driver.library}</driver_version>",
        f"\t<cuda_version>{node.driver.cuda}</cuda_version>",
        f"\t<attached_gpus>{len(trees)}</attached_gpus>",
    ]
    for gpu, fields in trees:
        lines.append(f'\t<gpu id="0000{gpu.bus_id.upper()}">')
        lines += _xml_lines(fields, "\t\t")
        lines += ["\t</gpu>", ""]
    lines.append("</nvidia_smi_log>")
    return Output("".join(f"{line}\n" for line in lines).encode())


def _text(node: Node, trees: Trees) -> Output:
    column = _by_branch(_COLUMNS, node)

    def head(label: str, value: object) -> str:
        return f"{label:<{column}}: {value}"

    lines = [
        "",
        "==============NVSMI LOG==============",
        "",
        head("Timestamp", READ_AT),
        head("Driver Version", node.driver.library),
        head("CUDA Version", node.driver.cuda),
        "",
        head("Attached GPUs", len(trees)),
    ]
    for gpu, fields in trees:
        lines.append(f"GPU 0000{gpu.bus_id.upper()}")
        lines += _text_lines(fields, 1, column)
        lines.append("")
    return Output("".join(f"{line}\n" for line in lines).encode())


def _by_branch(table: tuple[tuple[int, int], ...], node: Node) -> int:
    return next(value for since, value in table if node.driver.major >= since)


def _xml_lines(fields: tuple[Field, ...], indent: str) -> list[str]:
    lines = []
    for field in fields:
        if not field.tag:
            continue
        if field.tag == "mig_devices":
            lines += [f"{indent}<mig_devices>", f"{indent}\t{field.value}", f"{indent}</mig_devices>"]
        elif field.value is not None:
            lines.append(f"{indent}<{field.tag}>{escape(field.value)}</{field.tag}>")
        else:
            lines += [f"{indent}<{field.tag}>", *_xml_lines(field.children, f"{indent}\t"), f"{indent}</{field.tag}>"]
    return lines


def _text_lines(fields: tuple[Field, ...], depth: int, column: int) -> list[str]:
    lines = []
    for field in fields:
        if not field.label:
            lines += _text_lines(field.children, depth, column)
            continue
        label = f"{'    ' * (depth + field.deeper)}{field.label}"
        lines.append(f"{label:<{column}}: {field.in_text}" if field.in_text else label)
        lines += _text_lines(field.children, depth + 1, column)
    return lines
