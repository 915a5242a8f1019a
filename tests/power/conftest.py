"""The disk of these tests."""

from tests.power.disk import disk as disk
