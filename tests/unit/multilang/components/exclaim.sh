#!/bin/sh
# A bolt in the shell: emits each word with an exclamation mark.
read -r setup; read -r end
printf '{"pid":%s}\nend\n' "$$"
while read -r line && read -r end; do
  id=${line#*\"id\":\"}; id=${id%%\"*}
  case $line in
    *__heartbeat*) printf '{"command":"sync"}\nend\n' ;;
    *) word=${line#*\"tuple\":[\"}; word=${word%%\"*}
       printf '{"command":"emit","anchors":"%s","tuple":["%s!"],"need_task_ids":false}\nend\n' "$id" "$word"
       printf '{"command":"ack","id":"%s"}\nend\n' "$id" ;;
  esac
done
