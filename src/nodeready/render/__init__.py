"""Reports are made from `results.json` alone: a run is rendered again at any time, anywhere.

Each module renders one form: `certificate`, `html_report`, `junit`, `prometheus`, `terminal`. None of
them imports another part of nodeready, and all pass every text through `escape` first.
"""
