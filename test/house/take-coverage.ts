import { takeCoverage } from 'node:v8';
import { BroadcastChannel, isMainThread } from 'node:worker_threads';

// Preloaded into a receiver whose NODE_V8_COVERAGE is set: at SIGUSR2 each of its threads writes what it has run since the last time.

const threads = new BroadcastChannel('take coverage');
threads.addEventListener('message', () => takeCoverage());
threads.unref();

if (isMainThread) {
  process.on('SIGUSR2', () => {
    // oxlint-disable-next-line unicorn/require-post-message-target-origin -- of windows, not of threads
    threads.postMessage(null);
    takeCoverage();
  });
}
