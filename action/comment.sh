#!/usr/bin/env bash
# Writes the one comment of a pull request: the one that begins with the file's hidden marker is updated, else one is made.
#
#   GH_TOKEN=… action/comment.sh OWNER/REPOSITORY NUMBER FILE
set -euo pipefail
repository=${1:?owner/repository} number=${2:?number of the pull request} file=${3:?file with the comment}
marker=$(head -n 1 "$file")
[[ $marker == '<!-- editgate:'*' -->' ]] || { echo "$file: no marker in its first line" >&2; exit 2; }
found=$(gh api --paginate "repos/$repository/issues/$number/comments" |
    jq -rs --arg marker "$marker" '[.[] | if type == "array" then .[] else . end | select(.body | startswith($marker)) | .id] | first // empty')
if [[ -n $found ]]; then
    gh api --method PATCH "repos/$repository/issues/comments/$found" -F "body=@$file" >/dev/null
    echo "comment $found updated"
else
    gh api --method POST "repos/$repository/issues/$number/comments" -F "body=@$file" >/dev/null
    echo "comment made"
fi
