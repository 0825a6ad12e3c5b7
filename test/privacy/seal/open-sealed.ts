import { createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { inflateRawSync } from 'node:zlib';
import { DICTIONARY } from '../../../src/privacy/seal/record.ts';

// Sealed records and key files by their description alone: what any other program has to do to read them, and every
// version of this one. Of the product it has the dictionary, which is data; its hash is held in record.test.ts.

/** Opens the records of an archive with the keys that are in its store now. */
export class OpensSealed {
  readonly #keys = new Map<string, Buffer>();
  readonly destroyed = new Set<string>();

  /** @param store its folder, or what stands in its file of keys */
  constructor(store: string | Buffer, master: Buffer) {
    const file = typeof store === 'string' ? readFileSync(join(store, 'keys.bin')) : store;
    const wrapping = Buffer.from(
      hkdfSync('sha256', master, file.subarray(8, 24), 'millrace key store 1', 32),
    );
    for (let at = 128; at + 128 <= file.length; at += 128) {
      const slot = file.subarray(at, at + 128);
      const id = slot.subarray(4, 20);
      if (slot[0] === 2) this.destroyed.add(id.toString('hex'));
      if (slot[0] !== 1) continue;
      const key = opened(wrapping, id.subarray(0, 12), slot.subarray(4, 68), slot.subarray(68, 116));
      this.#keys.set(id.toString('hex'), key);
    }
  }

  /** The record inside a line; `erased` where its key is destroyed. @throws Error when it does not open */
  open(line: string): unknown {
    const { key } = JSON.parse(line) as { key: string };
    return this.destroyed.has(key) ? 'erased' : JSON.parse(this.text(line).toString());
  }

  /** The bytes of the record. @throws Error when it does not open */
  text(line: string): Buffer {
    const fields = JSON.parse(line) as Record<'key' | 'received_at' | 'nonce' | 'data', string>;
    const key = this.#keys.get(fields.key);
    if (key === undefined) throw new Error(`there is no key ${fields.key}`);
    const nonce = Buffer.from(fields.nonce, 'base64');
    const own = createHmac('sha256', key).update('record').update(nonce.subarray(0, 12)).digest();
    const about = Buffer.from(`millrace sealed 1 ${fields.key} ${fields.received_at}`);
    const text = opened(own, nonce.subarray(12), about, Buffer.from(fields.data, 'base64'));
    return inflateRawSync(text.subarray(1), { dictionary: DICTIONARY });
  }

  /** Ids of the records of a file of lines, in their order; `erased` for those whose keys are destroyed. */
  idsIn(text: string): string[] {
    const lines = text.split('\n').slice(0, -1);
    return lines.map((line) => {
      const record = this.open(line);
      return record === 'erased' ? record : (record as { id: string }).id;
    });
  }
}

function opened(key: Buffer, nonce: Buffer, about: Buffer, data: Buffer): Buffer {
  const decipher = createDecipheriv('aes-256-gcm', key, nonce).setAAD(about).setAuthTag(data.subarray(-16));
  return Buffer.concat([decipher.update(data.subarray(0, -16)), decipher.final()]);
}
