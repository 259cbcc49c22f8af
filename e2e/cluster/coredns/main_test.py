"""The cluster's CoreDNS holds the plug-ins that its configuration asks for, and no others."""

import pathlib
import re

HERE = pathlib.Path(__file__).resolve().parent


def configured():
    text = (HERE.parent / "configuration/coredns.yaml").read_text()
    corefile = re.search(r"  Corefile: \|\n(.*?)---", text, re.DOTALL).group(1)
    return set(re.findall(r"^ {8}([a-z]+)", corefile, re.MULTILINE))


def test_every_plug_in_of_the_corefile_is_compiled_in_and_has_its_place_in_the_order():
    source = (HERE / "main.go").read_text()
    imported = set(re.findall(r'coredns/plugin/([a-z]+)"', source))
    ordered = set(re.findall(r'"([a-z]+)"', re.search(r"Directives = .*", source).group()))
    assert imported == ordered == configured()
