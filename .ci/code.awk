# Prints the lines of Rust files that are code: not blank, no comment, not compiled for tests alone.
# Output: FILE:LINE:TEXT. Relies on rustfmt's layout, which the gate checks before.

function indent_of(line) {
    match(line, /^ */)
    return RLENGTH
}

# A file-backed module `name` of `file` that only tests have: it and its folder hold no code.
function exclude_module(file, name,    folder) {
    folder = file
    if (!sub(/(lib|main|mod)\.rs$/, "", folder)) {
        sub(/\.rs$/, "/", folder)
    }
    excluded[folder name ".rs"] = 1
    excluded_folder[folder name "/"] = 1
}

function is_excluded(file,    folder) {
    if (file in excluded) {
        return 1
    }
    for (folder in excluded_folder) {
        if (index(file, folder) == 1) {
            return 1
        }
    }
    return 0
}

FNR == 1 {
    comment = 0
    attribute = 0
    closing = 0
}

# Inside an item that only tests have, until its last line: the one at its own indentation.
closing {
    if (indent_of($0) == item_indent && $0 ~ /^ *}|;$/) {
        closing = 0
    }
    next
}

comment {
    if ($0 ~ /\*\//) {
        comment = 0
    }
    next
}

/^ *\/\*/ {
    comment = $0 !~ /\*\//
    next
}

/^ *$/ || /^ *\/\// {
    next
}

/^ *#\[cfg\((all\()?test[,)]/ {
    attribute = 1
    next
}

# The item under such an attribute, past further attributes.
attribute && !/^ *#\[/ {
    attribute = 0
    item_indent = indent_of($0)
    if ($0 ~ /^ *(pub(\([a-z]*\))? )?mod [a-z0-9_]+;/) {
        name = $0
        sub(/;.*/, "", name)
        sub(/.* /, "", name)
        exclude_module(FILENAME, name)
    } else if ($0 !~ /[;}]$/) {
        closing = 1
    }
    next
}

attribute {
    next
}

{
    text = $0
    # A comment behind code, unless the slashes stand inside a string.
    if (match(text, / \/\/ /)) {
        before = substr(text, 1, RSTART - 1)
        if (gsub(/"/, "\"", before) % 2 == 0) {
            text = before
        }
    }
    count++
    found_file[count] = FILENAME
    found_line[count] = FNR
    found_text[count] = text
}

END {
    for (i = 1; i <= count; i++) {
        if (!is_excluded(found_file[i])) {
            print found_file[i] ":" found_line[i] ":" found_text[i]
        }
    }
}
