import { ROOT_CONTEXT, SpanKind, trace } from '@opentelemetry/api';
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  ParentBasedSampler,
  type Sampler,
  SamplingDecision,
  TraceIdRatioBasedSampler,
} from '@opentelemetry/sdk-trace-base';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { newSpanId, SAMPLERS, samplingBy } from '../../src/metrics/sampling.ts';

/** The SDK's own. */
function samplerOf(name: string, share: number): Sampler {
  const root = name.endsWith('on')
    ? new AlwaysOnSampler()
    : name.endsWith('off')
      ? new AlwaysOffSampler()
      : new TraceIdRatioBasedSampler(share);
  return name.startsWith('parentbased_') ? new ParentBasedSampler({ root }) : root;
}

function isKept(sampler: Sampler, traceId: string, flags: number | null): boolean {
  const parent = { traceId, spanId: 'b7ad6b7169203331', traceFlags: flags ?? 0, isRemote: true };
  const context = flags === null ? ROOT_CONTEXT : trace.setSpanContext(ROOT_CONTEXT, parent);
  const { decision } = sampler.shouldSample(context, traceId, 'made up', SpanKind.SERVER, {}, []);
  return decision === SamplingDecision.RECORD_AND_SAMPLED;
}

const traceIds = fc
  .uint8Array({ minLength: 16, maxLength: 16 })
  .map((bytes) => Buffer.from(bytes).toString('hex'));
const shares = fc.oneof(fc.constantFrom(0, 0.5, 1), fc.double({ min: 0, max: 1, noNaN: true }));

test.each(SAMPLERS)('%s goes on with a trace where the SDK does', (name) => {
  fc.assert(
    fc.property(traceIds, fc.integer({ min: 0, max: 255 }), shares, (id, flags, share) => {
      fc.pre(!/^0*$/.test(id));
      const traceparent = `00-${id}-b7ad6b7169203331-${flags.toString(16).padStart(2, '0')}`;
      const expected = isKept(samplerOf(name, share), id, flags);
      expect(samplingBy(name, share).continues({ traceparent })).toBe(expected);
    }),
  );
});

test.each(SAMPLERS)('%s begins traces that the SDK would begin, and as many', (name) => {
  const sampling = samplingBy(name, 0.5);
  const begun = Array.from({ length: 4000 }, () => sampling.begin()).filter((id) => id !== null);
  for (const id of begun) expect(isKept(samplerOf(name, 0.5), id, null)).toBe(true);
  expect(new Set(begun).size).toBe(begun.length);
  const expected = name.endsWith('ratio') ? 2000 : name.endsWith('on') ? 4000 : 0;
  // Six standard deviations of 4,000 coins.
  expect(Math.abs(begun.length - expected)).toBeLessThanOrEqual(name.endsWith('ratio') ? 190 : 0);
});

test('ids are well-formed and do not repeat', () => {
  const ids = Array.from({ length: 5000 }, newSpanId);
  expect(ids.filter((id) => !/^[\da-f]{16}$/.test(id))).toEqual([]);
  expect(new Set(ids).size).toBe(ids.length);
});
