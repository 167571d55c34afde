"""Which network addresses may be reached (pure): the tables of RFC 6890 and what clouds add."""

import ipaddress
import re

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_NOT_PUBLIC_V4 = tuple(
    ipaddress.IPv4Network(network)
    for network in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/4",
        "240.0.0.0/4",
    )
)
_PUBLIC_V6 = ipaddress.IPv6Network("2000::/3")
_NOT_PUBLIC_V6 = tuple(
    ipaddress.IPv6Network(network)
    for network in ("2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20")
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_NEVER_V4 = tuple(
    ipaddress.IPv4Network(network)
    for network in ("169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4", "100.100.100.200/32")
)
_NEVER_V6 = tuple(
    ipaddress.IPv6Network(network) for network in ("fe80::/10", "ff00::/8", "fd00:ec2::/32")
)
_NUMBER_AT_END = re.compile(r"(?:^|\.)(?:\d+|0x[0-9a-f]*)$", re.IGNORECASE)


def is_odd_number(host: str) -> bool:
    """Whether the host is an address in a form that only some parsers read: 2130706433, 0x7f.1."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return bool(_NUMBER_AT_END.search(host))
    return False


def is_public(address: str) -> bool:
    """Whether this is an address of the open Internet; IPv4 hidden in IPv6 is not."""
    parsed = _parsed(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in network for network in _NOT_PUBLIC_V4)
    if parsed in _NAT64:
        return is_public(str(ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)))
    return parsed in _PUBLIC_V6 and not any(parsed in network for network in _NOT_PUBLIC_V6)


def is_permitted_for_owner(address: str) -> bool:
    """Whether the owner's own settings may name it: all but link-local, metadata, multicast."""
    parsed = _parsed(address)
    if isinstance(parsed, ipaddress.IPv4Address):
        return not any(parsed in network for network in _NEVER_V4)
    hidden = parsed.ipv4_mapped or (
        parsed in _NAT64 and ipaddress.IPv4Address(int(parsed) & 0xFFFFFFFF)
    )
    if hidden:
        return is_permitted_for_owner(str(hidden))
    return not any(parsed in network for network in _NEVER_V6)


def _parsed(address: str) -> _Address:
    """The address without its zone ("fe80::1%eth0")."""
    return ipaddress.ip_address(address.partition("%")[0])
