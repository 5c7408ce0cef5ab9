#!/bin/sh
# What:    a policy for --policy exec: to the next size while that is unknown or worth more.
# When:    as the beginning of your own; elasticrun-policies(7) says what comes in and goes out.
# Example: elasticrun -np 1:8 --policy exec:configs/policy-example.sh ./train
tr '{}' '\n\n' | awk -F '[:,]' '
  /^"version"/ { here = $4 }
  /"curve"/    { measured = 1 }
  /^"size"/    { if (measured) worth[$2] = $4 / $2 ^ 0.1; else size[++n] = $2 }
  function better(k) { return k && worth[here] && (!(k in worth) || worth[k] > 1.02 * worth[here]) }
  END {
    while (++at < n && size[at] < here);
    to = better(size[at + 1]) ? size[at + 1] : better(size[at - 1]) ? size[at - 1] : here
    printf "{\"target\":%d,\"reason\":\"worth %.1f at size %d\"}\n", to, worth[here], here
  }'
