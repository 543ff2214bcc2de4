"""Cuts one process from one service, in both directions or in one, with the kernel's packet filter.

Each daemon has a group id of its own; its connections are marked by it when they send their first packet,
and what comes in over a marked connection is dropped as a bad network would. Nothing is answered and
no connection is closed. Other processes of the machine are not touched. Needs root; the rules are taken
away at the end, and what a killed run left is removed by the next.
"""

import itertools
import os
import re
import subprocess

BOTH, OUT, IN = "both", "out", "in"  # as seen from the daemon
CHAIN = "RS-CHAOS-"  # and the process, and which of its filters: two may stand at once
_numbers = itertools.count(1)


def _run(*words, check=True):
    return subprocess.run(["iptables", "-w", "10", *map(str, words)], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=30, check=check).stdout


def is_allowed():
    try:
        _run("-m", "owner", "--help")
        _run("-t", "mangle", "-S", "OUTPUT")
        _run("-S", "INPUT")
    except (OSError, subprocess.SubprocessError):
        return False
    return True


def _remove(chain):
    for table, hook in (("mangle", "OUTPUT"), ("filter", "INPUT")):
        _run("-t", table, "-D", hook, "-j", chain, check=False)
        _run("-t", table, "-F", chain, check=False)
        _run("-t", table, "-X", chain, check=False)


def _remove_stale():
    for chain, pid in set(re.findall(rf"-N ({CHAIN}(\d+)-\d+)", _run("-S") + _run("-t", "mangle", "-S"))):
        if not os.path.exists(f"/proc/{pid}"):
            _remove(chain)


class PacketFilter:
    def __init__(self, groups):
        _remove_stale()
        self.chain = f"{CHAIN}{os.getpid()}-{next(_numbers)}"
        self.cuts = []
        for table, hook in (("mangle", "OUTPUT"), ("filter", "INPUT")):
            _run("-t", table, "-N", self.chain)
            _run("-t", table, "-A", hook, "-j", self.chain)
        for group in groups:
            _run("-t", "mangle", "-A", self.chain, "-m", "owner", "--gid-owner", group,
                 "-j", "CONNMARK", "--set-mark", group)

    def _rules(self, group, ports, direction):
        sides = {BOTH: ("--dport", "--sport"), OUT: ("--dport",), IN: ("--sport",)}[direction]
        return [(self.chain, "-p", "tcp", "-m", "connmark", "--mark", group, "-m", "tcp", side, port, "-j", "DROP")
                for port in ports for side in sides]

    def cut(self, group, ports, direction=BOTH):
        for rule in self._rules(group, ports, direction):
            _run("-A", *rule)
            self.cuts.append((group, rule))

    def heal(self, group):
        """Every cut of the daemon with that group id."""
        for cut in [c for c in self.cuts if c[0] == group]:
            _run("-D", *cut[1])
            self.cuts.remove(cut)

    def dropped(self):
        """Packets dropped by the cuts that stand."""
        return sum(int(line.split()[0]) for line in _run("-nvxL", self.chain).splitlines() if " DROP " in line)

    def remove(self):
        _remove(self.chain)
