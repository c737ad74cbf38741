"""Stand-alone scripts that touch the hardware: standard library, torch or pynvml, one JSON document."""
