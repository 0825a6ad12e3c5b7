import { isUtf8 } from 'node:buffer';
import { parentPort } from 'node:worker_threads';
import { QuickScan } from '../validate/quick-scan.ts';
import { HmacSha256 } from '../verify/hmac-sha256.ts';
import { matchingShared, MAX_SIGNATURES } from '../verify/matching-shared.ts';
import { nextAfter, readUnchecked, sharedNow, writeChecked } from './check-batch.ts';
import type { CheckBatch, CheckedBatch, CheckTerms } from './checker.ts';

// Compares signatures, and looks through what is authentic, in place of the thread that receives; it decides nothing.
const port = parentPort;
if (port === null) throw new Error('checking runs as a worker thread only');

let keys: readonly HmacSha256[] = [];
let names = 0;
let scan: QuickScan | null = null;
let spans = new Int32Array(0);

function adopt(terms: CheckTerms): void {
  keys = terms.keys.map((key) => new HmacSha256(key));
  names = terms.names.length;
  scan = QuickScan.of(terms.names, terms.maxDepth);
  spans = new Int32Array(2 * names);
}

function check(bytes: Buffer, at: number): void {
  const { prefix, signatures, body } = readUnchecked(bytes, at, names);
  const matched = matchingShared(keys, signatures.split(' ', MAX_SIGNATURES), prefix, body);
  const isUsual = matched >= 0 && isUtf8(body) && scan?.scan(body, spans) === true;
  writeChecked(bytes, at, { matched, spans: isUsual ? spans : null });
}

port.on('message', (order: CheckTerms | CheckBatch) => {
  if ('keys' in order) return adopt(order);
  const bytes = Buffer.from(order.bytes);
  for (let at = 0, left = order.count; left > 0; left -= 1, at = nextAfter(bytes, at)) check(bytes, at);
  const took = sharedNow() - order.sentAt;
  port.postMessage({ bytes: order.bytes, took } satisfies CheckedBatch, [order.bytes]);
});
port.postMessage('ready', []);
