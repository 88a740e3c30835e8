"""Mapping rules, subjects, and Kafka's principals; a conformance test verifies them."""

SEVERAL = (
    "RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/L, "
    "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L, "
    "RULE:^cn=(.*?),ou=(.*?),dc=(.*?),dc=(.*?)$/$1@$2/U, "
    "RULE:^.*[Cc][Nn]=([a-zA-Z0-9.]*).*$/$1/U, "
    "DEFAULT"
)
RULES = [
    # The first rule that matches counts.
    (SEVERAL, "CN=Duke,OU=ServiceUsers,O=Org,C=US", "duke"),
    (SEVERAL, "CN=Duke,OU=SME,O=mycp,L=Fulton,ST=MD,C=US", "duke@sme"),
    (SEVERAL, "cn=duke,ou=sme,dc=mycp,dc=com", "DUKE@SME"),
    (SEVERAL, "cN=duke,OU=JavaSoft,O=Sun Microsystems", "DUKE"),
    (SEVERAL, "OU=JavaSoft,O=Sun Microsystems,C=US", "OU=JavaSoft,O=Sun Microsystems,C=US"),
    ("DEFAULT", "CN=alice,O=Org", "CN=alice,O=Org"),
    (r"RULE:^CN=((\\, *|\w)+)(,.*|$)/$1/,DEFAULT", r"CN=Tkac\, Adam,OU=ITZ", r"Tkac\, Adam"),
    # All of the name has to match, but then every match is replaced.
    ("RULE:CN=(.*?)/$1/", "CN=alice", "alice"),
    ("RULE:.*/x/", "CN=alice", "xx"),
    ("RULE:CN=([a-z]+)/$1-$0/", "CN=alice", "alice-CN=alice"),
    # As many digits as name a group; a group that is not there stands for itself.
    ("RULE:^CN=(.*),O=(.*)$/$12-$23/", "CN=a,O=b", "a2-b3"),
    ("RULE:^CN=(.*),O=(.*)$/$1@$4/", "CN=a,O=b", "a@$4"),
    (r"RULE:^CN=(.*)$/\$1\\$1/", "CN=a", r"$1\a"),
    ("RULE:^CN=(a)?(b)?$/$1$2/", "CN=b", "b"),
    (r"RULE:^CN=(.*)\/(.*)$/$2\/$1/", "CN=a/b", "b/a"),
    ("RULE:^CN=([^,DEFAULT,]+)(,.*|$)/$1/", "CN=bob,O=x", "bob"),
    # Empty rules are ignored, and one rule may contain commas.
    (",, RULE:^CN=(.*)$/$1/U  ,,DEFAULT, ", "CN=a", "A"),
    ("RULE:,RULE:,/L,RULE:,/,DEFAULT", ",RULE:,", "L,RULE:,"),
]
OTHERS = [
    # What Kafka fails with, or writes in another way.
    ("RULE:^CN=(.*),O=(.*)$/$1@$4$5/", "CN=a,O=b", "a@$4$5"),
    ("RULE:CN=(?P<who>.*)$/${who}@here/", "CN=alice", "alice@here"),
]
