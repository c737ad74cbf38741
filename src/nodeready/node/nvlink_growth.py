"""How fast the errors of a GPU's NVLinks grow, between two samples of the same counters."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from nodeready.facts import nvlink_errors, uptime
from nodeready.node.catalogue import NVML
from nodeready.node.peers import LOST, driver_index
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_of

if TYPE_CHECKING:
    from nodeready.facts.nvlink_errors import Counters, NvLinkErrors
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources

_NAMED = 4


class NvLinkGrowth:
    """The errors of one GPU's links."""

    def __init__(self, sources: Sources, gpu: Gpu) -> None:
        self._sources, self._gpu = sources, gpu

    @property
    def errors(self) -> Reading[int]:
        """Replays and recoveries of all links between the two samples; none where the links never counted any."""
        grown = self._grown()
        if isinstance(grown, Unknown):
            return grown
        by_link = {link: c.replay + c.recovery for link, c in grown.value.items()}
        worst = [f"link {link} {count}" for link, count in by_link.items() if count]
        note = "; ".join(filter(None, [grown.note, ", ".join(worst[:_NAMED])]))
        return Known(sum(by_link.values()), note=note, recordings=grown.recordings)

    @property
    def crc_rate(self) -> Reading[float]:
        """CRC errors a second on the link that has most of them."""
        grown, seconds = self._grown(), self._seconds()
        if isinstance(grown, Unknown):
            return grown
        most = max((c.crc for c in grown.value.values()), default=0)
        if not most:
            return Known(0.0, note=grown.note, recordings=grown.recordings)
        if isinstance(seconds, Unknown):
            return seconds
        link = next(link for link, c in grown.value.items() if c.crc == most)
        return Known(round(most / seconds.value, 1), note=f"link {link}; {grown.note}", recordings=grown.recordings)

    def _grown(self) -> Reading[dict[int, Counters]]:
        """What each link that is up counted between the two samples."""
        links = self._sources.nvlinks(self._gpu)
        if isinstance(links, Unknown):
            return explained_by(links, "gpu.mig")
        up = [link.index for link in links.value if link.speed is not None]
        names = (nvlink_errors.NVLINK_ERRORS.name, nvlink_errors.NVLINK_ERRORS_LATER.name)
        if not up:
            return Known({}, note="no link is up", recordings=links.recordings)
        first = first_of(self._counters(self._sample(0), up, names[0]), self._by_nvml(up), agree=False)
        if isinstance(first, Unknown):
            return first
        if not any((c.replay, c.recovery, c.crc) != (0, 0, 0) for c in first.value.values()):
            return self._later(first, up, names, "no error was counted before")
        total = sum(c.replay + c.recovery + c.crc for c in first.value.values())
        return self._later(first, up, names, f"{total} errors since the driver was loaded")

    def _later(
        self, first: Known[dict[int, Counters]], up: list[int], names: tuple[str, str], before: str
    ) -> Reading[dict[int, Counters]]:
        second, seconds = self._counters(self._sample(1), up, names[1]), self._seconds()
        blank = all((c.replay, c.recovery, c.crc) == (0, 0, 0) for c in first.value.values())
        if blank and isinstance(second, Unknown) and second.missing:
            return Known(first.value, note="none since the driver was loaded", recordings=first.recordings)
        if isinstance(second, Unknown):
            return Unknown(f"how fast it grows is unknown ({before}): {second.reason}", recordings=names)
        if isinstance(seconds, Unknown):
            return Unknown(f"how fast it grows is unknown ({before}): {seconds.reason}", recordings=names)
        grown = {link: _difference(first.value[link], second.value[link]) for link in up}
        if any(min(c.replay, c.recovery, c.crc) < 0 for c in grown.values()):
            return Unknown("the counters were reset between the two samples", recordings=names)
        return Known(grown, note=f"in {seconds.value:.1f} s; {before}", recordings=names)

    def _by_nvml(self, up: list[int]) -> Reading[dict[int, Counters]]:
        """The same counters as NVML gives them, where nvidia-smi was not asked: there is no second sample of these."""
        found = self._sources.nvml
        if isinstance(found, Unknown):
            return found
        none = Unknown("NVML lists no counters of this GPU")
        listed = found.gpus.get(self._gpu.bus_id or "", {}).get("nvlink_errors", none)
        if isinstance(listed, Unknown):
            return explained_by(replace(listed, recordings=(NVML.name,)), "gpu.mig")
        counters = {link.index: nvlink_errors.Counters(link.replay, link.recovery, link.crc) for link in listed.value}
        missing = [link for link in up if link not in counters]
        if missing:
            return Unknown(f"NVML lists no counters of link {missing[0]}, which is up", recordings=(NVML.name,))
        return Known({link: counters[link] for link in up}, recordings=(NVML.name,))

    def _sample(self, number: int) -> NvLinkErrors | Unknown:
        probe = (nvlink_errors.NVLINK_ERRORS, nvlink_errors.NVLINK_ERRORS_LATER)[number]
        found = self._sources.documents.read(probe, nvlink_errors.parse)
        return explained_by(found, "driver.responds") if isinstance(found, Unknown) else found

    def _seconds(self) -> Reading[float]:
        first, second = self._sample(0), self._sample(1)
        if isinstance(first, Unknown) or isinstance(second, Unknown):
            return first if isinstance(first, Unknown) else second  # type: ignore[return-value]
        return uptime.between(first.uptime, second.uptime)

    def _counters(self, sample: NvLinkErrors | Unknown, up: list[int], name: str) -> Reading[dict[int, Counters]]:
        """The counters of the links that are up, all of which have to be there."""
        if isinstance(sample, Unknown):
            return sample
        mine, uuid = driver_index(self._sources, self._gpu.bus_id), self._gpu.smi("uuid")
        entry = None
        if isinstance(uuid, Known):
            named = [e for e in sample.gpus.values() if isinstance(e.uuid, Known) and e.uuid.value == uuid.value]
            entry = named[0] if len(named) == 1 else None
        if (
            entry is None
            and isinstance(mine, Known)
            and not any(isinstance(e.uuid, Known) for e in sample.gpus.values())
        ):
            entry = sample.gpus.get(mine.value)
        if entry is None:
            causes = uuid.causes if isinstance(uuid, Unknown) else LOST
            return Unknown(f"{name} lists no counters of this GPU", recordings=(name,), causes=causes)
        if isinstance(entry.links, Unknown):
            return explained_by(cite(entry.links, name), "gpu.mig")  # type: ignore[arg-type]
        missing = [link for link in up if link not in entry.links.value]
        if missing:
            return Unknown(f"{name} lists no counters of link {missing[0]}, which is up", recordings=(name,))
        return Known({link: entry.links.value[link] for link in up}, recordings=(name,))


def _difference(first: Counters, second: Counters) -> Counters:
    return nvlink_errors.Counters(
        second.replay - first.replay, second.recovery - first.recovery, second.crc - first.crc
    )
