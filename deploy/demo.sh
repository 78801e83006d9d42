#!/usr/bin/env bash
# Shows memoryd at work, with a daemon and a database of its own in a temporary folder; ends by itself.
set -euo pipefail

folder=$(mktemp -d)
export MEMORY_ENDPOINT="unix://$folder/run/admin.sock"
memoryd serve --data-dir "$folder" --socket "$folder/run/admin.sock" 2>"$folder/log" &
daemon=$!
trap 'kill "$daemon" 2>/dev/null || true; wait "$daemon" 2>/dev/null || true; rm -rf "$folder"' EXIT

title() { printf '\n\033[1m%s\033[0m\n' "$*"; }
show() {
  printf '$'
  for word in "$@"; do case $word in *[[:space:]]*) printf ' "%s"' "$word" ;; *) printf ' %s' "$word" ;; esac; done
  printf '\n'
  "$@"
}
as() { export MEMORY_USER_ID=$1 MEMORY_CHAT_ID=${2:-}; printf '# as %s%s\n' "$1" "${2:+ in chat $2}"; }

for _ in $(seq 300); do
  [ -S "$folder/run/admin.sock" ] && break
  kill -0 "$daemon" 2>/dev/null || { cat "$folder/log"; exit 1; }
  sleep 0.1
done

title "1. Alice tells her agent some things"
as alice
show memory add "I'm allergic to peanuts"
show memory add --about Sarah "my wife Sarah likes Italian food"
show memory add "my favorite color is red"
show memory add "my favorite color is blue"
show memory add "I work as a teacher"
show memory add "I work as a translator"
show memory add --expires 2w "the car is at the garage"

title "2. Found by meaning: no word of the question is in the answer"
show memory search --limit 1 "What should I avoid eating?"

title "3. What changed is noticed, what may have changed is marked, and each judgement has its reason"
show memory search --limit 1 "favorite color"
blue=$(memory search --json --limit 1 "favorite color" | python3 -c 'import json, sys; print(json.load(sys.stdin)["hits"][0]["memory"]["id"])')
show memory history "$blue"
show memory search --limit 2 "teacher"

title "   … and whom it is about"
show memory people
show memory search --limit 1 --about "my wife" "dinner"

title "4. Everyone sees their own, and what is shared in their chat"
as alice team
show memory add --shared "our standup is at 9am"
as bob team
show memory add "I take my coffee black"
show memory list
as bob elsewhere
show memory list

title "5. What an agent should know before it answers"
as alice team
show memory context "Plan a dinner for Sarah before tomorrow's standup"

title "6. What was said on Monday, and what the prompt of Tuesday gets from it"
cat >"$folder/monday.py" <<'END'
from memory_client import MemoryClient

with MemoryClient() as memory, memory.conversation("cli:monday") as talk:
    talk.user("The oven is broken, only the stove works until Friday")
    talk.assistant("Noted: stove only.", tool_calls=[{"name": "book_repair", "arguments": {"day": "Friday"}}])
END
printf '$ cat monday.py\n'
cat "$folder/monday.py"
printf '$ python monday.py\n'
as alice
python3 "$folder/monday.py"
show memory threads
show memory log cli:monday
show memory context --thread cli:tuesday "Can I bake a cake in the oven today?"
as alice team

title "7. Forgotten at once, and taken back"
id=$(memory search --json --limit 1 "peanuts" | python3 -c 'import json, sys; print(json.load(sys.stdin)["hits"][0]["memory"]["id"])')
show memory delete "$id"
show memory search "allergic to peanuts" --limit 1
show memory undelete "$id"

title "8. A sandbox is who the host says it is, whatever it says itself"
admin=$folder/run/admin.sock
box=$(memoryd sandbox open --socket "$admin" --user alice --chat team --allow add,search,context --ttl 8h --json)
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)'"$1"')' <<<"$box"; }
printf '$ memoryd sandbox open --user alice --chat team --allow add,search,context --ttl 8h\n'
field '["examples"]["bubblewrap"]'
printf '# in that sandbox\n'
unset MEMORY_USER_ID MEMORY_CHAT_ID
MEMORY_ENDPOINT=unix://$(field '["directory"]')/memory.sock
show memory whoami
show memory add "the tool was here"
show memory search --limit 1 "standup"
show memory search --user bob "coffee" || echo "(exit code $?)"
show memory list || echo "(exit code $?)"
MEMORY_ENDPOINT=unix://$admin
printf '# on the host\n'
show memoryd audit --socket "$admin" --door sandbox
show memoryd sandbox close --socket "$admin" "$(field '["grant"]["id"]')"
export MEMORY_USER_ID=alice MEMORY_CHAT_ID=team

title "9. kill -9, and nothing is lost"
kill -9 "$daemon"
wait "$daemon" 2>/dev/null || true
memoryd serve --data-dir "$folder" --socket "$folder/run/admin.sock" 2>>"$folder/log" &
daemon=$!
for _ in $(seq 300); do memory whoami >/dev/null 2>&1 && break; sleep 0.1; done
show memory search --limit 1 "What should I avoid eating?"
show memoryd status --socket "$folder/run/admin.sock"
