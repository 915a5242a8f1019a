"""What the operator allows feeds to reach: files below certain folders, and hosts."""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from streaming.errors import InvalidOptions
from streaming.gateway.addresses import Address, Network, destination, is_public, parse_address
from streaming.settings import feed_dirs, feed_hosts, home_of

FEED_HOSTS = "LOOKOUT_FEED_HOSTS"
# Where the gateway puts the recording of the demonstration, in the state folder.
SAMPLES = "samples"

# Where receivers stand: this machine, and private networks (RFC 1918, RFC 6598, RFC 4193).
_LOCAL: tuple[Network, ...] = tuple(
    map(
        ipaddress.ip_network,
        ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::1/128", "fc00::/7"),
    )
)


@dataclass(frozen=True)
class FeedAccess:
    """What the operator allows feeds to reach; by default, public hosts and only the demonstration's files.

    Parameters
    ----------
    home : Path
        The state folder; relative paths start from it.
    folders : tuple of Path
        Feeds read files and pipes only below these folders, or below the folder of the samples.
    hosts : tuple of str
        Names, addresses and networks (``192.168.0.0/16``) that feeds may reach although they are not public.
    setting : str
        The setting that the hosts come from, for error messages.
    """

    home: Path = Path("var")
    folders: tuple[Path, ...] = ()
    hosts: tuple[str, ...] = ()
    setting: str = FEED_HOSTS

    @classmethod
    def from_environ(cls, environ: Mapping[str, str] | None = None) -> "FeedAccess":
        """Return what an environment allows; by default, the environment of this process."""
        home = home_of(environ)
        return cls(home, feed_dirs(environ, home), feed_hosts(environ))

    @cached_property
    def _networks(self) -> tuple[Network, ...]:
        return tuple(network for host in self.hosts if (network := _network(host)))

    def file(self, path: str) -> Path:
        """Return the absolute path that a path leads to, with symbolic links followed.

        Raises
        ------
        InvalidOptions
            Unless that path is below an allowed folder. The state folder holds secrets, so its files may be read only
            if they are below an allowed folder *within* it.
        """
        home, target = self.home.resolve(), _resolved(self.home / Path(path).expanduser(), path)
        folders = [folder.resolve() for folder in (*self.folders, self.home / SAMPLES)]
        for folder in folders:
            keeps_secrets = home.is_relative_to(folder) and target.is_relative_to(home)
            if target.is_relative_to(folder) and not keeps_secrets:
                return target
        allowed = ", ".join(map(str, folders))
        raise InvalidOptions(
            "path must lie below a folder of LOOKOUT_FEED_DIRS (%(allowed)s); got %(path)s",
            allowed=allowed,
            path=repr(path),
        )

    def check_host(self, host: str, local: bool = False) -> None:
        """Raise InvalidOptions if a host is out of reach, as far as that is known without asking the DNS.

        Parameters
        ----------
        host : str
            A name or an address.
        local : bool
            See `reaches`.
        """
        name = host.rstrip(".").lower()
        address = "127.0.0.1" if name == "localhost" or name.endswith(".localhost") else name  # RFC 6761 6.3
        if parse_address(address) and not self.reaches(host, address, local):
            raise self.unreachable(host, local)

    def reaches(self, host: str, address: str, local: bool = False) -> bool:
        """Return whether a feed may connect to an address of a host.

        Parameters
        ----------
        host, address : str
            The host that the feed asks for, and an address that the DNS gave for it.
        local : bool
            Whether feeds may reach this machine and private networks even if the operator does not allow them.

        Examples
        --------
        >>> access = FeedAccess(hosts=("10.1.0.0/16", "tracker.lan"))
        >>> [access.reaches("a.example", ip) for ip in ("8.8.8.8", "10.1.2.3", "127.0.0.1", "::ffff:10.0.0.1")]
        [True, True, False, False]
        >>> access.reaches("tracker.lan", "192.168.1.9"), FeedAccess().reaches("h", "127.0.0.1", local=True)
        (True, True)
        """
        ip = parse_address(address)
        if ip is None:
            return False
        ends = {ip, destination(ip)}
        if host.rstrip(".").lower() in self.hosts or _among(ends, self._networks):
            return True
        return is_public(ip) or (local and _among(ends, _LOCAL))

    def unreachable(self, host: str, local: bool = False) -> InvalidOptions:
        """Return the error for a host that is out of reach."""
        values = {"setting": self.setting, "host": repr(host)}
        if local:
            return InvalidOptions(
                "a host must be public or local, or allowed by %(setting)s; %(host)s is for special use", **values
            )
        return InvalidOptions(
            "a host must be public, or allowed by %(setting)s; %(host)s is an address of this machine, of a private "
            "network or for special use",
            **values,
        )


def _resolved(path: Path, given: str) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a NUL
        raise InvalidOptions(
            "path must lead to a file; got %(given)s: %(error)s", given=repr(given), error=error
        ) from None


def _among(addresses: set[Address], networks: tuple[Network, ...]) -> bool:
    return any(address in network for address in addresses for network in networks)


def _network(text: str) -> Network | None:
    try:
        return ipaddress.ip_network(text, strict=False)
    except ValueError:
        return None
