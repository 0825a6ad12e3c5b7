import type { Envelope, Event } from '../../core/event.ts';
import type { InvalidReason } from '../../core/ingest.ts';
import {
  createValidator,
  DEFAULT_FIELDS,
  type EnvelopeOptions,
  type InvalidCode,
  type Validator,
} from './envelope.ts';

/**
 * Reads the envelope of stored events as the receiver does. Nothing is required: they were checked when they were received,
 * and old archives can lack ids.
 */
export function createKeptValidator(envelope: KeptEnvelope): Validator {
  return createValidator({ ...envelope, teams: [], userIds: 'text', require: [] });
}

type KeptEnvelope = Pick<EnvelopeOptions, keyof Envelope | 'maxDepth'>;

/** A stored event as the receiver would have it: fields of its body replace the stored ones. */
export function asItsBodySays(
  event: Event,
  validate: Validator,
): { readonly event: Event; readonly reasons: readonly InvalidReason[] | null } {
  const validation = validate(event.body, event);
  return {
    event: { ...event, ...validation.envelope },
    reasons: validation.isValid ? null : validation.reasons,
  };
}

/** With these reasons the fields of the body are not known. */
const UNREADABLE: ReadonlySet<string> = new Set([
  'empty',
  'not_json',
  'not_object',
  'too_deep',
] satisfies InvalidCode[]);

/**
 * Compares stored envelopes with the bodies of their events.
 * @param fields null for the defaults of a config
 * @returns names of the body's members that differ; null for an unreadable body
 */
export function createEnvelopeCheck(
  fields: KeptEnvelope | null,
): (kept: Envelope, body: Buffer, isSigned: () => boolean) => readonly string[] | null {
  const names = fields ?? { ...DEFAULT_FIELDS, maxDepth: 128 };
  const validate = createKeptValidator(names);
  return (kept, body, isSigned) => {
    const validation = validate(body);
    if (!validation.isValid && validation.reasons.some(({ code }) => UNREADABLE.has(code))) return null;
    const read = validation.envelope;
    const differ = (name: keyof Envelope): boolean => {
      if (kept[name] === (read[name]?.toWellFormed() ?? null)) return false;
      // Only if the body is not signed: a broker's metadata can have what it lacks, and a route can redact the client user.
      const mayDiffer = (read[name] ?? '') === '' || (name === 'clientUser' && kept.clientUser === null);
      return !mayDiffer || isSigned();
    };
    return (['type', 'team', 'user', 'clientUser'] as const).filter(differ).map((name) => names[name]);
  };
}
