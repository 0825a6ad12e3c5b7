import assert from 'node:assert/strict';
import type { Delivery, SendResult, Sink } from '../core/sink.ts';

/** An event that has arrived at a sink's far side. */
export interface Arrived {
  readonly id: string;
  readonly destination: string | null;
  /** The event's bytes, decoded to what was sent. */
  readonly body: Buffer;
}

/** Expects a valid result for each delivery. */
export function assertAnswer(results: readonly SendResult[], batch: readonly Delivery[]): void {
  assert.ok(Array.isArray(results), 'an array of results');
  assert.equal(results.length, batch.length, 'one result for each delivery');
  for (const result of results) {
    const { status } = result;
    assert.ok(['delivered', 'held', 'retry', 'refused'].includes(status), `the status ${status}`);
    if (result.status === 'held')
      assert.ok(result.until instanceof Promise, 'held with a promise that says until when');
    if (result.status === 'delivered' || result.status === 'held') continue;
    assert.equal(typeof result.reason, 'string', `${result.status} with a reason`);
    if (result.status === 'refused') assert.equal(typeof result.code, 'string', 'refused with a code');
    else assertDelay(result.delayMs);
  }
}

function assertDelay(delayMs = 0): void {
  assert.ok(delayMs >= 0 && delayMs <= 3_600_000, `delayMs is ${delayMs}: at most an hour`);
}

export function isTaken(result: SendResult | undefined): boolean {
  return result?.status === 'delivered' || result?.status === 'held';
}

export function assertTaken(results: readonly SendResult[]): void {
  for (const result of results) assert.ok(isTaken(result), `${result.status} instead of delivered or held`);
}

/** Expects that a closed sink has confirmed what it held. */
export async function assertConfirmed(results: readonly SendResult[]): Promise<void> {
  for (const result of results)
    if (result.status === 'held')
      assert.equal(await stateOf(result), 'confirmed', 'what was held is confirmed when the sink has closed');
}

export async function stateOf(result: SendResult): Promise<'confirmed' | 'rejected' | 'pending'> {
  if (result.status !== 'held') return result.status === 'delivered' ? 'confirmed' : 'pending';
  const turn = new Promise<'pending'>((resolve) => setImmediate(() => resolve('pending')));
  const said = result.until.then(
    () => 'confirmed' as const,
    () => 'rejected' as const,
  );
  return await Promise.race([said, turn]);
}

export function assertTroubles(sink: Sink): void {
  for (const { code, detail, since, lost = 0 } of sink.troubles?.() ?? []) {
    assert.match(code, /^[a-z_]+$/, 'the code of a trouble is one word');
    assert.equal(typeof detail, 'string');
    assert.ok(Number.isFinite(since), 'since: milliseconds since the epoch');
    assert.ok(lost >= 0, `lost is ${lost}`);
  }
}

/** @param extras whether more may have arrived than `sent`: twice, or without a claim */
export function assertArrived(arrived: readonly Arrived[], sent: readonly Delivery[], extras = false): void {
  if (!extras) assert.equal(arrived.length, sent.length, 'as many as were delivered');
  const byId = new Map(arrived.map((each) => [each.id, each]));
  for (const { event, destination } of sent) {
    const found = byId.get(event.id);
    assert.ok(found !== undefined, `${event.id} has not arrived`);
    assert.ok(found.body.equals(event.body), `the body of ${event.id} has changed`);
    assert.equal(found.destination, destination, `the destination of ${event.id}`);
  }
}
