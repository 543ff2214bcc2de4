"""reportctl as people and scripts run it."""

import json
import os
import subprocess

import harness


class Ctl:
    """reportctl on one installation."""

    def __init__(self, installation):
        self.installation = installation
        self.db = installation.connect()

    def start(self, *words, role=None, database=None, prefix=()):
        conninfo = database or self.installation.stack.conninfo(self.installation.database,
                                                                role or "postgres")
        return subprocess.Popen([*prefix, harness.build() / "reportctl", *map(str, words)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                env={**os.environ, "REPORTCTL_DATABASE": conninfo, "LANG": "C"})

    def run(self, *words, **where):
        process = self.start(*words, **where)
        try:
            out, errors = process.communicate(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        return subprocess.CompletedProcess(words, process.returncode, out, errors)

    def ok(self, *words, **where):
        result = self.run(*words, **where)
        assert result.returncode == 0, result.stdout + result.stderr
        return result.stdout

    def json(self, *words, **where):
        return json.loads(self.ok(*words, "-o", "json", **where))

    def refused(self, code, *words, **where):
        """The single line on stderr of a run that must end with the code and print nothing else."""
        result = self.run(*words, **where)
        assert result.returncode == code, result.stdout + result.stderr
        assert result.stdout == ""
        assert result.stderr.startswith("reportctl: ") and result.stderr.count("\n") == 1, (
            result.stderr)
        return result.stderr
