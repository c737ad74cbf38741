"""Which other GPUs a GPU reaches over NVLink, and whether it can read their memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nodeready.facts import peer_status, topology
from nodeready.node.catalogue import NVML
from nodeready.reading import Known, Reading, Unknown, cite, explained_by, first_of

if TYPE_CHECKING:
    from nodeready.node.gpus import Gpu
    from nodeready.node.sources import Sources

_NAMED = 4
LOST = ("gpu.count", "pcie.gpu-present")


class Peers:
    """The pairs of one GPU with all others of the node, each in one direction."""

    def __init__(self, sources: Sources, gpu: Gpu, gpus: tuple[Gpu, ...]) -> None:
        self._sources, self._gpu, self._gpus = sources, gpu, gpus

    @property
    def short_pairs(self) -> Reading[int]:
        """Other GPUs to which it has another number of NVLinks than the baseline joins two GPUs by.

        What single links explain is not counted again: it is unknown on the GPU that lacks them, and
        left out on its partners.
        """
        name = topology.TOPO.name
        matrix = self._sources.documents.read(topology.TOPO, topology.parse)
        if isinstance(matrix, Unknown):
            return explained_by(matrix, "driver.responds")
        mine, peers = driver_index(self._sources, self._gpu.bus_id, len(matrix.gpus)), self._peers()
        if isinstance(mine, Unknown):
            return cite(mine, name)
        if isinstance(peers, Unknown):
            return peers
        found: dict[str, int] = {}
        for other, index in peers.value.items():
            link = matrix.link(f"GPU{mine.value}", f"GPU{index}")
            if isinstance(link, Unknown):
                return cite(link, name)
            found[other] = int(link.value[2:]) if link.value.startswith("NV") else 0
        wanted = self._sources.terms.links_per_pair
        short = {other: count for other, count in found.items() if count not in wanted}
        note = ", ".join(f"{count} to {other}" for other, count in list(short.items())[:_NAMED])
        return Known(len(short), note=note, recordings=(name,))

    @property
    def silent_peers(self) -> Reading[int]:
        """Other GPUs whose memory it cannot read, by nvidia-smi, else by NVML."""
        return first_of(self._silent_by_smi(), self._silent_by_nvml(), agree=False)

    def _silent_by_smi(self) -> Reading[int]:
        name = peer_status.PEER_STATUS.name
        status = self._sources.documents.read(peer_status.PEER_STATUS, peer_status.parse)
        if isinstance(status, Unknown):
            return explained_by(status, "driver.responds")
        mine, peers = driver_index(self._sources, self._gpu.bus_id, len(status.gpus)), self._peers()
        if isinstance(mine, Unknown):
            return cite(mine, name)
        if isinstance(peers, Unknown):
            return peers
        words = status.of(mine.value)
        if isinstance(words, Unknown):
            return cite(words, name)
        return _silent({other: words.value.get(index, "not listed") for other, index in peers.value.items()}, name)

    def _silent_by_nvml(self) -> Reading[int]:
        found, bus_id = self._sources.nvml, self._gpu.bus_id
        if isinstance(found, Unknown):
            return found
        words: Reading[dict[str, str]] = found.gpus.get(bus_id or "", {}).get(
            "p2p_nvlink", Unknown("NVML lists no pair")
        )
        peers = self._peers()
        if isinstance(words, Unknown):
            return cite(words, NVML.name)
        if isinstance(peers, Unknown):
            return peers
        places = {gpu.subject: gpu.bus_id or "" for gpu in self._gpus}
        return _silent({other: words.value.get(places[other], "not listed") for other in peers.value}, NVML.name)

    def _peers(self) -> Reading[dict[str, int]]:
        """The other GPUs that the driver lists, by nvidia-smi's number, without those whose own links explain it.

        One whose links are unknown, while this one's are all there, is looked at from its own side.
        """
        why = _excuse(self._gpu)
        if why is not None:
            return why
        sound = isinstance(self._gpu.nvlink.links_active, Known)
        return Known(
            {
                gpu.subject: index.value
                for gpu in self._gpus
                if gpu is not self._gpu
                and isinstance(index := driver_index(self._sources, gpu.bus_id), Known)
                and _excuse(gpu) is None
                and not (sound and isinstance(gpu.nvlink.links_active, Unknown))
            }
        )


def driver_index(sources: Sources, bus_id: str | None, shown: int | None = None) -> Reading[int]:
    """nvidia-smi's number of a GPU: its place in bus order among those listed, of which an output shows so many."""
    bus_ids = sources.listed_bus_ids()
    if not bus_ids:
        return Unknown("the driver lists no GPU", causes=("driver.responds",))
    if bus_id not in bus_ids:
        where = f"the driver lists no GPU at {bus_id}" if bus_id else "this GPU's slot is unknown"
        return Unknown(where, causes=LOST)
    if shown is not None and shown != len(bus_ids):
        return Unknown(f"it shows {shown} GPUs, the driver lists {len(bus_ids)}", causes=LOST)
    return Known(bus_ids.index(bus_id))


def _excuse(gpu: Gpu) -> Unknown | None:
    """Why a GPU's pairs cannot be judged by themselves: its links or MIG are judged, and found at fault, elsewhere."""
    links, mig = gpu.nvlink.links_active, gpu.mig_mode
    wanted = gpu.terms.links
    if isinstance(mig, Known) and mig.value != "Disabled":
        return Unknown(f"{gpu.subject} is in MIG mode", recordings=mig.recordings, causes=("gpu.mig",))
    if isinstance(links, Known) and wanted and links.value not in wanted:
        reason = f"{links.value} links of {gpu.subject} are up: its pairs lack the others"
        return Unknown(reason, recordings=links.recordings, causes=("nvlink.links-active",))
    return None


def _silent(words: dict[str, str], name: str) -> Reading[int]:
    silent = {other: word for other, word in words.items() if word != "OK"}
    note = ", ".join(f"{other}: {word.lower()}" for other, word in list(silent.items())[:_NAMED])
    return Known(len(silent), note=note, recordings=(name,))
