#pragma once

/// Driver functions that user programs call themselves, for tests that play such a program.
extern "C" {
int cuStreamCreate(void **stream, unsigned flags);
int cuStreamBeginCapture_v2(void *stream, int mode);
int cuStreamEndCapture(void *stream, void **graph);
int cuGraphInstantiateWithFlags(void **executable, void *graph, unsigned long long flags);
int cuGraphLaunch(void *executable, void *stream);
int cuCtxGetCurrent(void **context);
}
