import { createHmac, createSecretKey, randomBytes, type KeyObject } from 'node:crypto';
import { constants, deflateRawSync, inflateRawSync } from 'node:zlib';
import { DeflateRaw } from 'minizlib';
import type { SealedRecord } from '../../core/sealed-record.ts';
import { decrypt, encrypt, TAG } from './aes-gcm.ts';

/**
 * Text that records have in common, most frequent last, so that a record compressed alone is still small. Part of the format:
 * with one character changed, no record sealed before opens. A better dictionary needs a flag of its own.
 */
export const DICTIONARY: Buffer = Buffer.from(
  [
    '"vitamins":{"vitamin_a":,"vitamin_b1":,"vitamin_b2":,"vitamin_b3":,"vitamin_b5":,"vitamin_b6":,"vitamin_b7":',
    ',"vitamin_b9":,"vitamin_b12":,"vitamin_c":,"vitamin_d":,"vitamin_e":,"vitamin_k":,"folic_acid":,"biotin":,"niacin":',
    '"trace_elements":{"chromium":,"copper":,"fluoride":,"iodine":,"manganese":,"molybdenum":,"selenium":',
    '"minerals":{"sodium":,"potassium":,"calcium":,"phosphorus":,"magnesium":,"iron":,"zinc":,"chloride":',
    '"saturated":,"monounsaturated":,"polyunsaturated":,"omega3":,"omega6":,"total":},"fiber":,"water":,"alcohol":',
    '"cholesterol":,"sugar":,"unit":"kcal","value":},"macros":{"carbs":,"protein":,"fats":{"total":,"saturated":',
    '},"micros":{"minerals":{"sodium":,"energy":{"unit":"kcal","value":',
    '"heart_rate":{"avg_bpm":,"max_bpm":,"distance":,"calories_total":,"steps":,"duration":,"quantity":,"samples":[',
    '"bedtime_start":"","bedtime_stop":"","timezone_offset":,"sport":{"id":,"name":"","slug":"","interval":',
    '"order_id":"","status":"completed","events":[{"id":,"patient_details":{"dob":"","gender":"","loinc":"","results":[',
    '"failure_reason":null,"needs_human_review":false,"is_reviewed":false,"start_date":"","end_date":"","is_final":true',
    'lab_report.parsing_job.updatedlabtest.appointment.labtest.result.critical"labtest.order.updated',
    'provider.connection.createdhistorical.data.sleep.activity.workouts.body.glucose.heartrate.hrv.steps.',
    '"priority_id":,"calendar_date":"20","date":"20","timestamp":"20","created_at":"20","updated_at":"20',
    'T00:00:00+00:00","T00:00:00.000Z","provider_id":"","source_id":,"source_app_id":null,"source":{"app_id":null,',
    '"device_id":null,"provider":"","type":"app","name":"","logo":"","slug":""},"user_id":"","data":{"id":"',
    ',"webhook-id":"msg_","webhook-timestamp":"17","webhook-signature":"v1,=="},"event":{"data":{"id":"',
    '"historical.data.created""daily.data.updated","event_type":"daily.data.meal.created","data":{',
    '},"team_id":"","user_id":"","client_user_id":""}}}}}',
    '{"id":"msg_","source":"webhooks","received_at":"202","event_type":"daily.data.meal.created","team_id":"',
    '","user_id":"","client_user_id":"","headers":{"svix-id":"msg_","svix-timestamp":"17',
    '","svix-signature":"v1,="},"event":{"event_type":"daily.data.meal.created","data":{"id":"',
  ].join(''),
);

/** Bytes above which compressing takes longer than setting up a compressor. */
const LARGE = 8192;
const LEVEL = 4;
/** A small window, which is cleared faster. */
const SMALL = { level: LEVEL, windowBits: 14, memLevel: 5, chunkSize: 32_768, flush: constants.Z_FINISH };

/** Raw deflate with a dictionary. Short texts share one compressor: setting one up takes longer than compressing 1.6 KB. */
export class Deflate {
  readonly #dictionary: Buffer;
  #shared: DeflateRaw | null = null;
  #pieces: Buffer[] = [];

  constructor(dictionary: Buffer) {
    this.#dictionary = dictionary;
  }

  /** @throws Error when memory is short */
  compress(text: Buffer): Buffer {
    if (text.length > LARGE) return deflateRawSync(text, { level: LEVEL, dictionary: this.#dictionary });
    const shared = this.#shared ?? this.#newShared();
    // A compressor that has failed is of no use: it is kept only after a success.
    this.#shared = null;
    this.#pieces = [];
    shared.write(text);
    shared.reset();
    const [first, ...more] = this.#pieces;
    if (first === undefined) throw new Error('nothing was compressed');
    this.#shared = shared;
    return more.length === 0 ? first : Buffer.concat([first, ...more]);
  }

  #newShared(): DeflateRaw {
    const options = { ...SMALL, dictionary: this.#dictionary };
    return new DeflateRaw(options).on('data', (piece) => this.#pieces.push(piece));
  }
}

/** A nonce is 24 random bytes: the first half derives a key for one record, the second is the nonce of that key. */
const NONCE = 24;
const HALF = 12;
const KEY_ID = /^[0-9a-f]{32}$/;

/** Bytes that a forged record may inflate to at most. */
const LONGEST = 512 * 2 ** 20;

const deflate = new Deflate(DICTIONARY);
/** Flag: raw deflate with the dictionary. */
const DEFLATED = 1;
const FLAGS = Buffer.of(DEFLATED);
const INFLATE = { dictionary: DICTIONARY, maxOutputLength: LONGEST } as const;

/**
 * Seals the line of a record, compressed. The id and the time outside are authenticated: neither can be exchanged.
 * @param key 32 bytes
 * @param line without its line break
 */
export function sealLine(id: string, key: KeyObject, receivedAt: string, line: Buffer): SealedRecord {
  const nonce = freshNonce();
  const text = deflate.compress(line);
  const data = encrypt(
    recordKey(key, nonce),
    nonce.subarray(HALF),
    about(id, receivedAt),
    Buffer.concat([FLAGS, text]),
  );
  return { key: id, received_at: receivedAt, nonce, data };
}

/** The line of a sealed record; null when the record is not as it was sealed. */
export function openLine(
  key: KeyObject,
  { key: id, received_at: receivedAt, nonce, data }: SealedRecord,
): Buffer | null {
  if (nonce.length !== NONCE || data.length <= TAG || !KEY_ID.test(id)) return null;
  const plain = decrypt(recordKey(key, nonce), nonce.subarray(HALF), about(id, receivedAt), data);
  try {
    return plain?.[0] === DEFLATED ? inflateRawSync(plain.subarray(1), INFLATE) : null;
  } catch {
    return null;
  }
}

/** Nonces made at once: one by one they take longer than sealing. */
const NONCES = 256;
let nonces = Buffer.alloc(0);

function freshNonce(): Buffer {
  if (nonces.length === 0) nonces = randomBytes(NONCE * NONCES);
  const nonce = nonces.subarray(0, NONCE);
  nonces = nonces.subarray(NONCE);
  return nonce;
}

function recordKey(key: KeyObject, nonce: Buffer): KeyObject {
  return createSecretKey(createHmac('sha256', key).update('record').update(nonce.subarray(0, HALF)).digest());
}

function about(id: string, receivedAt: string): Buffer {
  return Buffer.from(`millrace sealed 1 ${id} ${receivedAt}`);
}
