"""The Java that Spark would run: where it is, its version, and how to get one."""

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["LEAST_JAVA", "Java", "find_java", "java_command", "java_fault"]

LEAST_JAVA = 17
"""The oldest Java that Spark 4 runs on."""

_VERSION = re.compile(r'version "(?:1\.)?(\d+)([^"]*)"')
_SECONDS = 20.0


@dataclass(frozen=True)
class Java:
    """A java program. major: 17 and so on; None if it does not run. text: its version, in full."""

    path: str
    major: int | None
    text: str


def find_java(environment: Mapping[str, str] | None = None) -> Java | None:
    """Returns what Spark would run: that of JAVA_HOME, or else the first one on PATH. None if there is none."""
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    path = str(Path(home) / "bin" / "java") if home else "java"
    found = shutil.which(path, path=environment.get("PATH"))
    if found is None:
        return None
    try:
        done = subprocess.run(
            [found, "-version"], capture_output=True, text=True, timeout=_SECONDS, check=False, env=dict(environment)
        )
    except (OSError, subprocess.SubprocessError):
        return Java(found, None, "")
    told = _VERSION.search(done.stderr + done.stdout)
    return Java(found, int(told[1]), told[1] + told[2]) if told else Java(found, None, "")


def java_command(too_old: bool = False) -> str:
    """Returns the command that installs Java here. too_old: the one of the system's own choice does not do."""
    known = {
        "conda": f"conda install 'openjdk>={LEAST_JAVA}'",
        "apt-get": f"apt-get install {f'openjdk-{LEAST_JAVA}-jre' if too_old else 'default-jre'}-headless",
        "dnf": "dnf install java-21-openjdk-headless",
        "apk": f"apk add openjdk{LEAST_JAVA}-jre-headless",
        "brew": f"brew install openjdk@{LEAST_JAVA}",
    }
    active = [name for name in known if (name != "conda" or "CONDA_PREFIX" in os.environ) and shutil.which(name)]
    return known[active[0]] if active else f"install a Java runtime, {LEAST_JAVA} or newer"


def java_fault(environment: Mapping[str, str] | None = None) -> str | None:
    """Returns what is wrong with the Java that Spark would run, and the command that mends it; None if nothing is."""
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    found = find_java(environment)
    if found is None and home:
        return f"JAVA_HOME is {home}, and there is no bin/java in it: unset JAVA_HOME, or name another folder"
    if found is None:
        return f"Spark needs Java {LEAST_JAVA} or newer, and there is no java on PATH: {java_command()}"
    if found.major is None:
        return f"{found.path} does not run (java -version): {java_command()}"
    if found.major < LEAST_JAVA:
        then = ", and point JAVA_HOME at it" if home else ""
        return (
            f"Spark needs Java {LEAST_JAVA} or newer, and {found.path} is {found.text}: "
            f"{java_command(too_old=True)}{then}"
        )
    return None
