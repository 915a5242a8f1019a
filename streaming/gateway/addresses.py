"""Which addresses are public. Each door that judges an address asks `is_public`."""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def _networks(*texts: str) -> tuple[Network, ...]:
    return tuple(map(ipaddress.ip_network, texts))


# Not public: what IANA's registries of special-purpose addresses do not call globally reachable, multicast, the anycast
# addresses of protocols (in 192.0.0.0/24 and 2001::/23) and relays to 6to4.
_SPECIAL_IPV4 = _networks(
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24"),
    *("192.0.2.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "240.0.0.0/4"),
)
# RFC 4291 2.4: other IPv6 addresses than these are not global unicast, as of ::/96, fc00::/7, fe80::/10 and fec0::/10.
_GLOBAL_UNICAST = ipaddress.IPv6Network("2000::/3")
# 2001::/23 has Teredo, and 2002::/16 is 6to4: both lead to IPv4 addresses of somebody's choice.
_SPECIAL_IPV6 = _networks("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
# RFC 4291 2.5.5.2 and RFC 6052 2.1: the last 32 bits are the IPv4 address to which a connection goes.
_EMBEDDING = _networks("::ffff:0:0/96", "64:ff9b::/96")
_IPV4_BITS = 0xFFFFFFFF


def parse_address(text: str) -> Address | None:
    """Return the address that a text states, or None; that of a URL may be in brackets."""
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


def destination(address: Address) -> Address:
    """Return the IPv4 address to which a connection to an IPv6 one goes, if that embeds one; else the address.

    Examples
    --------
    >>> [str(destination(ipaddress.ip_address(text))) for text in ("::ffff:10.0.0.1", "64:ff9b::a00:1", "fd00::1")]
    ['10.0.0.1', '10.0.0.1', 'fd00::1']
    """
    embeds = any(address in network for network in _EMBEDDING)
    return ipaddress.IPv4Address(int(address) & _IPV4_BITS) if embeds else address


def is_public(address: Address) -> bool:
    """Return whether an address is of the public internet, by its `destination`.

    References
    ----------
    .. [1] https://www.iana.org/assignments/iana-ipv4-special-registry
    .. [2] https://www.iana.org/assignments/iana-ipv6-special-registry

    Examples
    --------
    >>> [is_public(ipaddress.ip_address(text)) for text in ("8.8.8.8", "::ffff:8.8.8.8", "10.0.0.1", "::7f00:1")]
    [True, True, False, False]
    """
    ip = destination(address)
    if isinstance(ip, ipaddress.IPv4Address):
        return not any(ip in network for network in _SPECIAL_IPV4)
    return ip in _GLOBAL_UNICAST and not any(ip in network for network in _SPECIAL_IPV6)
