"""The stack's own certificate authority: made at `up`, gone with the stack.

Files below <scratch>/tls: ca.crt, what clients trust; ca.key; server.crt and server.key, for
localhost and 127.0.0.1, which PostgreSQL and Kafka show.
"""

import os
import subprocess

# Backdated by a day: a clock that a test steps back must not make it "not yet valid".
DAYS = 30


def make(directory):
    """Make the authority and the servers' certificate, once. RuntimeError when openssl cannot."""
    if os.path.exists(os.path.join(directory, "server.crt")):
        return
    os.makedirs(directory, mode=0o755, exist_ok=True)
    authority(directory, "ca", "report-scheduler stack")
    certificate(directory, "server", "ca", "DNS:localhost,IP:127.0.0.1")


def authority(directory, name, subject):
    """name.crt and name.key: one that signs itself and may sign others."""
    openssl(directory, "req", "-x509", *new_key(name), "-out", f"{name}.crt", "-days", str(DAYS),
            "-subj", f"/CN={subject}", "-addext", "basicConstraints=critical,CA:TRUE",
            "-addext", "keyUsage=critical,keyCertSign,cRLSign")


def certificate(directory, name, signer, names, days=DAYS):
    """name.crt and name.key, signed by signer; names: subjectAltName. days below 0: expired."""
    openssl(directory, "req", *new_key(name), "-out", f"{name}.csr", "-subj", f"/CN={name}")
    with open(os.path.join(directory, f"{name}.ext"), "w", encoding="ascii") as f:
        f.write(f"subjectAltName={names}\nextendedKeyUsage=serverAuth\n")
    openssl(directory, "x509", "-req", "-in", f"{name}.csr", "-CA", f"{signer}.crt", "-CAkey",
            f"{signer}.key", "-CAcreateserial", "-days", str(days), "-extfile", f"{name}.ext",
            "-out", f"{name}.crt")
    for ending in ("csr", "ext"):
        os.unlink(os.path.join(directory, f"{name}.{ending}"))


def new_key(name):
    return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", f"{name}.key"]


def openssl(directory, *words):
    # A umask of our own: the keys must be nobody else's, whatever the caller's is.
    result = subprocess.run(["openssl", *words], cwd=directory, stdin=subprocess.DEVNULL, umask=0o077,
                            capture_output=True, text=True, timeout=30, check=False)
    if result.returncode != 0:
        raise RuntimeError(f"openssl {' '.join(words)} failed:\n{result.stderr}")
    for name in os.listdir(directory):
        if name.endswith(".crt"):
            os.chmod(os.path.join(directory, name), 0o644)
