import { createHash, createHmac, createSecretKey, type Hash, type Hmac, timingSafeEqual } from 'node:crypto';
import { isDeliveryId } from '../../core/delivery-id.ts';
import { MillraceError } from '../../core/errors.ts';
import type { Precheck, Refusal, RequestHeaders, Verification, Verifier } from '../../core/verifier.ts';
import { checkTimestamp, headerOf } from './headers.ts';

/** The signature scheme of a sender. Header names in any case. */
export interface HmacOptions {
  /** Header with the signature. */
  readonly header: string;
  readonly algorithm: 'sha256' | 'sha1' | 'sha512';
  readonly encoding: 'hex' | 'base64';
  /** Text before the signature in its header, such as `sha256=`. */
  readonly prefix: string;
  /** Header with the time of signing, in whole seconds; must be part of `content`. */
  readonly timestampHeader: string | null;
  /** Header with the delivery id, part of `content`; without it the id is the SHA-256 of the signed content. */
  readonly idHeader: string | null;
  /** The signed content, with `{body}`, `{timestamp}` and `{id}` for its parts. Null: the body, after the timestamp if there is one. */
  readonly content: string | null;
}

export const DEFAULT_HMAC: HmacOptions = {
  header: 'x-signature',
  algorithm: 'sha256',
  encoding: 'hex',
  prefix: '',
  timestampHeader: null,
  idHeader: null,
  content: null,
};

const PARTS = /(\{body\}|\{timestamp\}|\{id\})/;

/**
 * Verifies one HMAC in one header. The bytes of a secret's text are its key.
 * @param options.tolerance milliseconds in both directions; only for a timestamp header
 */
export function createHmacVerifier(options: {
  secrets: readonly string[];
  tolerance: number;
  hmac?: Partial<HmacOptions>;
}): Verifier {
  const settings: HmacOptions = { ...DEFAULT_HMAC, ...options.hmac };
  const { algorithm, encoding, prefix } = settings;
  const keys = options.secrets.map((secret, index) => {
    if (secret === '') throw new MillraceError('config_invalid', `signing.secrets[${index}] is empty`);
    return createSecretKey(Buffer.from(secret));
  });
  if (keys.length === 0) throw new MillraceError('secret_missing', 'signing.secrets is empty');
  const content = parseContent(settings);
  const signsId = content.includes('{id}');
  const header = settings.header.toLowerCase();
  const timestampHeader = settings.timestampHeader?.toLowerCase() ?? null;
  const idHeader = settings.idHeader?.toLowerCase() ?? null;

  const length = prefix.length + createHmac(algorithm, '').digest(encoding).length;

  /** The signature and what belongs to it, if the headers are complete and the time is within the tolerance. */
  const claimOf = (headers: RequestHeaders, now: number): Claim | Refusal => {
    const signature = headerOf(headers, header);
    if (signature === null) return missing(header);
    if (signature.length !== length) return NO_MATCH;
    const kept: Record<string, string> = { [header]: signature };

    let timestamp = '';
    if (timestampHeader !== null) {
      const text = headerOf(headers, timestampHeader);
      if (text === null) return missing(timestampHeader);
      const untimely = checkTimestamp(text, now, options.tolerance);
      if (untimely !== null) return untimely;
      kept[timestampHeader] = timestamp = text;
    }

    const id = idHeader === null ? null : headerOf(headers, idHeader);
    const named = id !== null && isDeliveryId(id);
    if (signsId && !named) return missing(idHeader ?? 'id');
    if (idHeader !== null && named) kept[idHeader] = id;
    return { ok: true, signature, timestamp, id: named ? id : null, headers: kept };
  };

  return {
    scheme: 'hmac',
    precheck(headers, now): Precheck {
      const claim = claimOf(headers, now);
      return claim.ok ? CHEAP : claim;
    },
    verify(headers, body, now): Verification {
      const claim = claimOf(headers, now);
      if (!claim.ok) return claim;
      const { signature, timestamp, id } = claim;
      const parts = { '{timestamp}': timestamp, '{id}': id ?? '', '{body}': body };
      const given = Buffer.from(encoding === 'hex' ? signature.toLowerCase() : signature);
      let matched = -1;
      for (const [index, key] of keys.entries()) {
        const digest = signContent(createHmac(algorithm, key), content, parts).digest(encoding);
        const expected = Buffer.from(encoding === 'hex' ? (prefix + digest).toLowerCase() : prefix + digest);
        const matches = given.length === expected.length && timingSafeEqual(given, expected);
        if (matches && matched < 0) matched = index;
      }
      if (matched < 0) return NO_MATCH;
      const named = id ?? signContent(createHash('sha256'), content, parts).digest('hex');
      return { ok: true, id: named, secret: matched, headers: claim.headers };
    },
  };
}

interface Claim {
  readonly ok: true;
  readonly signature: string;
  /** Empty without a timestamp header. */
  readonly timestamp: string;
  /** Null without a well-formed one. */
  readonly id: string | null;
  readonly headers: Readonly<Record<string, string>>;
}

const CHEAP: Precheck = { ok: true, tries: 0 };
const NO_MATCH: Refusal = { ok: false, code: 'signature_invalid', detail: 'the signature matches no secret' };

function missing(header: string): Refusal {
  return { ok: false, code: 'signature_missing', detail: `needs ${header}` };
}

function signContent<H extends Hash | Hmac>(
  hash: H,
  content: readonly string[],
  parts: Record<string, string | Buffer>,
): H {
  for (const part of content) hash.update(Object.hasOwn(parts, part) ? (parts[part] ?? '') : part);
  return hash;
}

/** Splits the template into its parts. @throws MillraceError config_invalid for a timestamp, id or body that is not signed */
function parseContent(settings: HmacOptions): readonly string[] {
  const { timestampHeader, idHeader } = settings;
  const content = settings.content ?? (timestampHeader === null ? '{body}' : '{timestamp}.{body}');
  const parts = content.split(PARTS).filter((part) => part !== '');
  if (!parts.includes('{body}')) throw invalid('has no {body}');
  if (parts.includes('{timestamp}') !== (timestampHeader !== null)) {
    throw invalid(
      timestampHeader === null ? 'has {timestamp} but there is no timestampHeader' : 'has no {timestamp}',
    );
  }
  if (parts.includes('{id}') && idHeader === null) throw invalid('has {id} but there is no idHeader');
  // An attacker with one delivery could send it under any id, and make the deliveries with these ids duplicates.
  if (!parts.includes('{id}') && idHeader !== null)
    throw invalid('has no {id}, so idHeader is not protected');
  return parts;
}

function invalid(detail: string): MillraceError {
  return new MillraceError('config_invalid', `signing.hmac.content ${detail}`);
}
