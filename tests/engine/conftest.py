"""One Spark session for the whole test run."""

import os

import pytest

from streaming.settings import EngineSettings


@pytest.fixture(scope="session")
def spark_settings(redis_server, tmp_path_factory):
    """Settings of the session's Spark; a test replaces the folder of its state."""
    home = tmp_path_factory.mktemp("home")
    return EngineSettings(
        home=home, redis_url=redis_server, state_dir=home / "engine", java_home=os.environ.get("JAVA_HOME", "")
    )


@pytest.fixture(scope="session")
def spark(spark_settings):
    """The session."""
    from streaming.engine.class_archive import ClassArchive
    from streaming.engine.java import java_home
    from streaming.engine.python_workers import fork_server
    from streaming.engine.session import start_session

    java, folder = java_home(spark_settings.java_home, spark_settings.home), spark_settings.home / "spark"
    with fork_server(folder) as forks:
        session = start_session(spark_settings, java, forks.python, ClassArchive(java, folder).options)
        yield session
        session.stop()
