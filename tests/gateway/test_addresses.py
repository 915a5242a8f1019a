"""Which addresses feeds and deliveries reach: none of IANA's special-purpose registries, nor what embeds one."""

import re
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address, ip_network
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streaming.errors import InvalidOptions
from streaming.gateway.access import FeedAccess
from streaming.gateway.http_session import guarded_session

ROOT = Path(__file__).parents[2]
REFUSED, REACHED, AS_EMBEDDED = "refused", "reached", "as embedded"
# IANA IPv4 Special-Purpose Address Registry: block, name, RFC, whether it is globally reachable; and what Lookout does.
IPV4 = [
    ("0.0.0.0/8", "This network", "RFC 791", False, REFUSED),
    ("0.0.0.0/32", "This host on this network", "RFC 1122", False, REFUSED),
    ("10.0.0.0/8", "Private-Use", "RFC 1918", False, REFUSED),
    ("100.64.0.0/10", "Shared Address Space", "RFC 6598", False, REFUSED),
    ("127.0.0.0/8", "Loopback", "RFC 1122", False, REFUSED),
    ("169.254.0.0/16", "Link Local", "RFC 3927", False, REFUSED),
    ("172.16.0.0/12", "Private-Use", "RFC 1918", False, REFUSED),
    ("192.0.0.0/24", "IETF Protocol Assignments", "RFC 6890", False, REFUSED),
    ("192.0.0.0/29", "IPv4 Service Continuity Prefix", "RFC 7335", False, REFUSED),
    ("192.0.0.8/32", "IPv4 dummy address", "RFC 7600", False, REFUSED),
    ("192.0.0.9/32", "Port Control Protocol Anycast", "RFC 7723", True, REFUSED),
    ("192.0.0.10/32", "Traversal Using Relays around NAT Anycast", "RFC 8155", True, REFUSED),
    ("192.0.0.170/32", "NAT64/DNS64 Discovery", "RFC 8880", False, REFUSED),
    ("192.0.0.171/32", "NAT64/DNS64 Discovery", "RFC 8880", False, REFUSED),
    ("192.0.2.0/24", "Documentation (TEST-NET-1)", "RFC 5737", False, REFUSED),
    ("192.31.196.0/24", "AS112-v4", "RFC 7535", True, REACHED),
    ("192.52.193.0/24", "AMT", "RFC 7450", True, REACHED),
    ("192.88.99.0/24", "Deprecated (6to4 Relay Anycast)", "RFC 7526", None, REFUSED),
    ("192.168.0.0/16", "Private-Use", "RFC 1918", False, REFUSED),
    ("192.175.48.0/24", "Direct Delegation AS112 Service", "RFC 7534", True, REACHED),
    ("198.18.0.0/15", "Benchmarking", "RFC 2544", False, REFUSED),
    ("198.51.100.0/24", "Documentation (TEST-NET-2)", "RFC 5737", False, REFUSED),
    ("203.0.113.0/24", "Documentation (TEST-NET-3)", "RFC 5737", False, REFUSED),
    ("240.0.0.0/4", "Reserved", "RFC 1112", False, REFUSED),
    ("255.255.255.255/32", "Limited Broadcast", "RFC 8190", False, REFUSED),
]
# IANA IPv6 Special-Purpose Address Registry.
IPV6 = [
    ("::1/128", "Loopback Address", "RFC 4291", False, REFUSED),
    ("::/128", "Unspecified Address", "RFC 4291", False, REFUSED),
    ("::ffff:0:0/96", "IPv4-mapped Address", "RFC 4291", False, AS_EMBEDDED),
    ("64:ff9b::/96", "IPv4-IPv6 Translat.", "RFC 6052", True, AS_EMBEDDED),
    ("64:ff9b:1::/48", "IPv4-IPv6 Translat.", "RFC 8215", False, REFUSED),
    ("100::/64", "Discard-Only Address Block", "RFC 6666", False, REFUSED),
    ("100:0:0:1::/64", "Dummy IPv6 Prefix", "RFC 9780", False, REFUSED),
    ("2001::/23", "IETF Protocol Assignments", "RFC 2928", False, REFUSED),
    ("2001::/32", "TEREDO", "RFC 4380", None, REFUSED),
    ("2001:1::1/128", "Port Control Protocol Anycast", "RFC 7723", True, REFUSED),
    ("2001:1::2/128", "Traversal Using Relays around NAT Anycast", "RFC 8155", True, REFUSED),
    ("2001:1::3/128", "DNS-SD Service Registration Protocol Anycast", "RFC 9665", True, REFUSED),
    ("2001:2::/48", "Benchmarking", "RFC 5180", False, REFUSED),
    ("2001:3::/32", "AMT", "RFC 7450", True, REFUSED),
    ("2001:4:112::/48", "AS112-v6", "RFC 7535", True, REFUSED),
    ("2001:10::/28", "Deprecated (ORCHID)", "RFC 4843", None, REFUSED),
    ("2001:20::/28", "ORCHIDv2", "RFC 7343", True, REFUSED),
    ("2001:30::/28", "Drone Remote ID Protocol Entity Tags", "RFC 9374", True, REFUSED),
    ("2001:db8::/32", "Documentation", "RFC 3849", False, REFUSED),
    ("2002::/16", "6to4", "RFC 3056", None, REFUSED),
    ("2620:4f:8000::/48", "Direct Delegation AS112 Service", "RFC 7534", True, REACHED),
    ("3fff::/20", "Documentation", "RFC 9637", False, REFUSED),
    ("5f00::/16", "Segment Routing (SRv6) SIDs", "RFC 9602", False, REFUSED),
    ("fc00::/7", "Unique-Local", "RFC 4193", False, REFUSED),
    ("fe80::/10", "Link-Local Unicast", "RFC 4291", False, REFUSED),
]
# Of other registries.
OTHERS = [
    ("224.0.0.0/4", "Multicast", "RFC 5771", False, REFUSED),
    ("ff00::/8", "Multicast", "RFC 4291", False, REFUSED),
    ("::/96", "Deprecated (IPv4-compatible)", "RFC 4291", False, REFUSED),
    ("fec0::/10", "Deprecated (Site-Local)", "RFC 3879", False, REFUSED),
]
ROWS = [*IPV4, *IPV6, *OTHERS]
NO_IPV4 = [ip_network(block) for block, *_, told in ROWS if told == REFUSED and "." in block]
NO_IPV6 = [ip_network(block) for block, *_, told in ROWS if told != REACHED and ":" in block]
PUBLIC = FeedAccess()


def addresses_of(block):
    network = ip_network(block)
    kind = IPv4Address if isinstance(network, IPv4Network) else IPv6Address
    return st.integers(int(network[0]), int(network[-1])).map(kind)


INSIDE = st.sampled_from(NO_IPV4).flatmap(addresses_of)
OUTSIDE = addresses_of("0.0.0.0/0").filter(lambda ip: not any(ip in network for network in NO_IPV4))


def reached(address):
    """Whether a feed may connect there; the three doors agree."""
    text = str(address)
    reaches = PUBLIC.reaches("feed.example", text)
    for host in (text, f"[{text}]"):
        try:
            PUBLIC.check_host(host)
        except InvalidOptions:
            assert not reaches
        else:
            assert reaches
    return reaches


@pytest.mark.parametrize(("block", "told"), [(row[0], row[-1]) for row in ROWS if row[-1] != AS_EMBEDDED])
def test_each_block_of_the_registries_is_refused_or_reached_as_the_table_says(block, told):
    network = ip_network(block)
    assert {reached(network[place]) for place in (0, network.num_addresses // 2, -1)} == {told == REACHED}


@given(st.sampled_from([row[0] for row in ROWS if row[-1] == REFUSED]).flatmap(addresses_of))
def test_no_address_of_a_refused_block_is_reached(address):
    assert not reached(address)


# Forms of IPv6 addresses that lead to an IPv4 address.
MAPPED = [lambda ip: (0xFFFF << 32) | int(ip), lambda ip: (0x64FF9B << 96) | int(ip)]
OTHERWISE = [
    int,  # IPv4-compatible
    lambda ip: (0x64FF9B0001 << 80) | int(ip),  # NAT64 with the prefix of a network of one's own
    lambda ip: (0x2002 << 112) | (int(ip) << 80) | 1,  # 6to4
    lambda ip: (0x20010000 << 96) | (int(ip) << 64) | 0x8000,  # the server of Teredo
    lambda ip: (0x20010000 << 96) | (0x08080808 << 64) | (int(ip) ^ 0xFFFFFFFF),  # its client
]


@given(st.sampled_from([*MAPPED, *OTHERWISE]), INSIDE)
def test_no_address_that_embeds_a_refused_one_is_reached(embed, ip):
    assert not reached(IPv6Address(embed(ip)))


@given(OUTSIDE)
def test_a_public_address_is_reached_also_where_it_is_mapped_or_translated(ip):
    assert reached(ip) and all(reached(IPv6Address(embed(ip))) for embed in MAPPED)
    assert not any(reached(IPv6Address(embed(ip))) for embed in OTHERWISE)


@given(addresses_of("::/0") | addresses_of("2000::/3"))
def test_an_ipv6_address_is_reached_if_it_is_global_unicast_and_of_no_block(ip):
    assert reached(ip) == (ip in ip_network("2000::/3") and not any(ip in network for network in NO_IPV6))


@given(INSIDE, st.sampled_from(MAPPED))
def test_what_the_operator_allows_is_reached_also_where_it_is_mapped_and_nothing_else_is(ip, embed):
    access = FeedAccess(hosts=(str(ip),))
    for address in (ip, IPv6Address(embed(ip))):
        assert access.reaches("feed.example", str(address))
    other = ip_address(int(ip) ^ 1) if int(ip) > 1 else ip_address("10.0.0.1")
    assert not access.reaches("feed.example", str(other))


def test_a_block_that_the_operator_names_is_reached():
    access = FeedAccess(hosts=("64:ff9b:1::/48", "fec0::/10"))
    assert access.reaches("h", "64:ff9b:1::a00:1") and access.reaches("h", "fec0::1")
    assert not access.reaches("h", "::a00:1")


@pytest.mark.parametrize(
    "host",
    [
        *("127.1", "2130706433", "0177.0.0.1", "0x7f000001", "127.0.0.1.", "１２７.0.0.1", "⑯⑨。254.169.254"),
        *("[::ffff:7f00:1]", "[::7f00:1]", "[fec0::1]", "[::1%25lo]", "[64:ff9b:1::7f00:1]", "0", "[::]"),
    ],
)
async def test_no_spelling_of_an_address_of_this_machine_is_connected_to(host):
    async with guarded_session(PUBLIC, 5) as session:
        with pytest.raises(Exception, match=r"a host must be public|not a canonical IPv4 address"):
            await session.get(f"http://{host}:9/")


# Who else resolves names or connects, and why no feed and no delivery chooses the address.
ASKERS = {
    "streaming/gateway/transports/tcp_client.py": "asks FeedAccess",
    "streaming/gateway/http_session.py": "asks FeedAccess",
    "webapp/delivery/channels/base.py": "asks FeedAccess",
    "webapp/live/home.py": "finds a free port of this machine",
    "webapp/live/programs.py": "asks the web program that it started",
}
CONNECTS = re.compile(
    r"\b(?:getaddrinfo|create_connection|open_connection|urlopen|ClientSession|TCPConnector)\(|import (requests|httpx)"
)
JUDGES = re.compile(r"\.is_(?:global|private|loopback|link_local|reserved|multicast|site_local|unspecified)\b")


def test_only_known_modules_connect_and_none_judges_addresses_in_its_own_way():
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text()
        for folder in ("streaming", "webapp")
        for path in (ROOT / folder).rglob("*.py")
    }
    assert {path for path, text in texts.items() if CONNECTS.search(text)} == set(ASKERS)
    assert not [path for path, text in texts.items() if JUDGES.search(text)], "streaming.gateway.addresses.is_public"
