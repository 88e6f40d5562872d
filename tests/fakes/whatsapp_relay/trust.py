"""Why a client believes the server: a certificate authority for TLS, and a root key with its chain for Noise."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.fakes.whatsapp_relay import protobuf
from tests.fakes.whatsapp_relay.curve import KeyPair, new_key_pair

_AUTHORITY = "an authority on loopback"
_HOSTS = ("web.whatsapp.com", "*.whatsapp.net")
_VALID = timedelta(days=30)

_LEAF, _INTERMEDIATE = 1, 2
_DETAILS, _SIGNATURE = 1, 2
_SERIAL, _ISSUER, _KEY, _NOT_BEFORE, _NOT_AFTER = 1, 2, 3, 4, 5


@dataclass(frozen=True, slots=True)
class Trust:
    """``authority`` is the file with the certificate that signs those of TLS, and ``root`` the key that signs Noise's.

    ``static`` is the server's own, and ``chain`` proves it.
    """

    authority: Path
    context: ssl.SSLContext
    root: bytes
    static: KeyPair
    chain: bytes

    @property
    def environment(self) -> dict[str, str]:
        """Of a process: the authority is the only one that it knows."""
        return {"SSL_CERT_FILE": str(self.authority), "SSL_CERT_DIR": "/nonexistent"}


def new_trust(folder: Path) -> Trust:
    """With its files in ``folder``."""
    root, intermediate, static = new_key_pair(), new_key_pair(), new_key_pair()
    chain = {
        _LEAF: _noise_certificate(8, 7, static.public, intermediate),
        _INTERMEDIATE: _noise_certificate(7, 0, intermediate.public, root),
    }
    authority, context = _tls(folder)
    return Trust(authority, context, root.public, static, protobuf.encoded(chain))


def _noise_certificate(serial: int, issuer: int, key: bytes, signer: KeyPair) -> dict[int, bytes]:
    now = datetime.now(UTC)
    times = {_NOT_BEFORE: int((now - _VALID).timestamp()), _NOT_AFTER: int((now + _VALID).timestamp())}
    details = protobuf.encoded({_SERIAL: serial, _ISSUER: issuer, _KEY: key, **times})
    return {_DETAILS: details, _SIGNATURE: signer.sign(details)}


def _tls(folder: Path) -> tuple[Path, ssl.SSLContext]:
    signing, serving = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    authority = _certificate(_AUTHORITY).public_key(signing.public_key())
    authority = authority.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    names = x509.SubjectAlternativeName([x509.DNSName(host) for host in _HOSTS])
    served = _certificate(_HOSTS[0]).public_key(serving.public_key()).add_extension(names, critical=False)
    trusted, own = folder / "authority.pem", folder / "server.pem"
    trusted.write_bytes(authority.sign(signing, hashes.SHA256()).public_bytes(Encoding.PEM))
    key = serving.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    own.write_bytes(served.sign(signing, hashes.SHA256()).public_bytes(Encoding.PEM) + key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    return trusted, context


def _certificate(subject: str) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return x509.CertificateBuilder(
        subject_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, subject)]),
        issuer_name=x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, _AUTHORITY)]),
        serial_number=x509.random_serial_number(),
        not_valid_before=now - _VALID,
        not_valid_after=now + _VALID,
    )
