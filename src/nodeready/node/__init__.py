"""A node as its checks see it: readings joined from all the forms in which the evidence holds them."""

from nodeready.node.node import Node

__all__ = ["Node"]
