import { isRecord } from '../../lib/parsed.ts';
import { commitment } from '../../core/receipt.ts';
import { sha256 } from './hashing.ts';

/** A receipt as its sender keeps it. */
export interface KeptReceipt {
  readonly id: string;
  readonly origin: string;
  readonly index: number;
  readonly entry: Buffer;
  /** c2sp.org/tlog-proof@v1; null until it was asked for. */
  readonly proof: string | null;
}

const HEADER = /^log="([^"]+)", leaf=(0|[1-9]\d{0,14}), salt="([\w-]{22})", received=(\d{1,15})$/;

/**
 * Reads a line of a sender's receipts: `{"id","receipt","body_sha256","proof"}`, with the header as `receipt`; `body_base64` can
 * stand for the hash. Other fields are ignored.
 * @throws RangeError for a line that is not a receipt
 */
export function parseKept(line: string): KeptReceipt {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    throw new RangeError('is not JSON');
  }
  const { id, receipt, body_sha256: digest, body_base64: body, proof } = isRecord(value) ? value : {};
  if (typeof id !== 'string' || typeof receipt !== 'string') throw new RangeError('needs id and receipt');
  const [, origin = '', leaf, salt = '', received] = HEADER.exec(receipt) ?? [];
  if (leaf === undefined) throw new RangeError('its receipt is not one of millrace');
  const bodyHash = typeof body === 'string' ? sha256(Buffer.from(body, 'base64')) : hexOf(digest);
  if (bodyHash === null) throw new RangeError('needs body_sha256 or body_base64');
  const text = commitment({ id, receivedAt: Number(received), salt, bodyHash: bodyHash.toString('latin1') });
  if (text === null) throw new RangeError('its salt or its time is none');
  const entry = Buffer.from(text, 'latin1');
  return { id, origin, index: Number(leaf), entry, proof: typeof proof === 'string' ? proof : null };
}

function hexOf(text: unknown): Buffer | null {
  return typeof text === 'string' && /^[0-9a-f]{64}$/i.test(text) ? Buffer.from(text, 'hex') : null;
}
