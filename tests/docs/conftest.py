"""The graph of tests/pipelines, in which the commands of the documents run."""

from tests.pipelines.conftest import graph, workspace

__all__ = ["graph", "workspace"]
