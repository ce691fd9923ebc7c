#!/bin/sh
# One job of the queue slack. The args are JSON on stdin; JOB_ID, JOB_NAME and JOB_ATTEMPT say which job it is.
# What it prints goes to the log. Exit 0: done; 65: give up; 75: Slack said "too fast", pause; anything else: try again.
args=$(cat)
echo "would call Slack: $JOB_NAME $args"
