"""Bridges, slots and access control, which lspci shows to root alone."""

import re

import pytest

from nodeready.facts.lspci import parse
from nodeready.reading import Known, Unknown

PORT = """17:01.0 PCI bridge [0604]: Broadcom / LSI PEX890xx PCIe Gen 5 Switch [1000:c030] (rev b0)
	Bus: primary=17, secondary=19, subordinate=19, sec-latency=0
	Capabilities: [68] Express (v2) Downstream Port (Slot+), MSI 00
		LnkCap:	Port #1, Speed 32GT/s, Width x16, ASPM L0s L1
		LnkSta:	Speed 32GT/s (ok), Width x16 (ok)
		SltCap:	AttnBtn- PwrCtrl- MRL- AttnInd- PwrInd- HotPlug- Surprise-
			Slot #28, PowerLimit 25.000W; Interlock- NoCompl+
	Capabilities: [220 v1] Access Control Services
		ACSCap:	SrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans+
		ACSCtl:	SrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-

"""


def port(*changes):
    text = PORT
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    return parse(text.encode()).devices["0000:17:01.0"]


def test_a_port_of_a_switch():
    found = port()
    assert (found.below, found.physical_slot, found.redirects.value) == (0x19, "28", False)


@pytest.mark.parametrize("word", ["ReqRedir", "CmpltRedir"])
def test_either_redirection_counts(word):
    ctl = PORT[PORT.index("ACSCtl") :]
    assert port((ctl, ctl.replace(f"{word}-", f"{word}+"))).redirects.value is True


def test_the_abilities_alone_redirect_nothing():
    """ACSCap holds ReqRedir+ on every switch."""
    assert port().redirects.value is False


def test_a_port_without_access_control_says_so():
    ctl = PORT[PORT.index("	Capabilities: [220") :]
    assert port((ctl, "\n")).redirects.value is None


def test_what_a_plain_user_sees_is_unknown():
    hidden = PORT[PORT.index("	Capabilities: [68]") :]
    found = port((hidden, "	Capabilities: <access denied>\n\n"))
    assert isinstance(found.redirects, Unknown)
    assert "root" in found.redirects.reason
    assert found.below == 0x19


def test_a_listing_without_details_is_unknown():
    found = parse(PORT.partition("\n")[0].encode() + b"\n").devices["0000:17:01.0"]
    assert found.below is None
    assert isinstance(found.redirects, Unknown)


def test_the_name_of_a_slot_wins_over_its_number():
    assert port(("	Bus:", "	Physical Slot: 28-1\n	Bus:")).physical_slot == "28-1"
    assert port(("Slot #28", "Slot #0")).physical_slot == ""


def test_every_prefix_says_the_same_or_nothing():
    for end in range(len(PORT)):
        found = parse(PORT[:end].encode())
        if not isinstance(found, Unknown):
            device = found.devices["0000:17:01.0"]
            assert not isinstance(device.redirects, Known) or device.redirects.value in (None, False)
            assert device.below in (None, 0x19)


def test_the_real_listing(captures):
    data = (captures / "lspci/01-hgx-h100x8-xe9680-lspci-vvv.txt").read_bytes()
    devices = parse(data).devices
    assert all(isinstance(device.redirects, Known) for device in devices.values())
    redirecting = sorted(at for at, device in devices.items() if device.redirects.value)
    assert redirecting == [f"0000:82:0{number}.0" for number in range(4)], "those above the NVSwitches alone"
    assert (devices["0000:17:01.0"].below, devices["0000:17:01.0"].physical_slot) == (0x19, "28")
    seen = len(re.findall(rb"\tACSCtl:", data))
    assert sum(device.redirects.value is not None for device in devices.values()) <= seen
