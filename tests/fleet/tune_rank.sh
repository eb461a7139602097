#!/bin/bash
export CUDA_VISIBLE_DEVICES=$LOCAL_RANK # a shard tunes the first GPU that it sees
deftc tune "$@" --shard "$RANK/$WORLD_SIZE" --journal "journals/$RANK.jsonl"
