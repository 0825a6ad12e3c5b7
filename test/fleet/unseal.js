// Opens what it can of sealed records with a place of keys as it lies there, and the master key. Shares no code with the product:
// written after the layouts in src/seal. Whatever lies in the folder is tried as a slot, at every offset.
import { createDecipheriv, createHmac, hkdfSync } from 'node:crypto';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';

/** All keys that can be had out of a folder. */
export function keysIn(folder, master) {
  const secret = Buffer.from(master.replace('mrk_', ''), 'base64');
  const salt = readFileSync(join(folder, 'header')).subarray(8, 24);
  const wrapping = Buffer.from(hkdfSync('sha256', secret, salt, 'millrace key store 1', 32));
  const keys = new Map();
  for (const name of readdirSync(folder, { recursive: true })) {
    const path = join(folder, name);
    if (!statSync(path).isFile()) continue;
    const bytes = readFileSync(path);
    for (let at = 0; at + 128 <= bytes.length; at += 1) {
      const slot = bytes.subarray(at, at + 128);
      const [id, owner, wrapped] = [slot.subarray(4, 20), slot.subarray(20, 68), slot.subarray(68, 116)];
      const key = decrypt(wrapping, id.subarray(0, 12), Buffer.concat([id, owner]), wrapped);
      if (key !== null) keys.set(id.toString('hex'), key);
    }
  }
  return keys;
}

/** How many of the records open. @param records `{ value, headers }` as Apache's consumer reads them */
export function opened(records, keys) {
  return records.filter(({ value, headers }) => {
    const text = headers['millrace-sealed'];
    if (text === undefined || value === null) return false;
    const { id, at } = JSON.parse(text);
    return [...keys.values()].some((key) => {
      const own = createHmac('sha256', key).update('record').update(value.subarray(0, 12)).digest();
      const about = Buffer.from(`millrace sealed 1 ${id} ${at}`);
      return decrypt(own, value.subarray(12, 24), about, value.subarray(24)) !== null;
    });
  }).length;
}

function decrypt(key, nonce, about, data) {
  const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: 16 });
  decipher.setAAD(about).setAuthTag(data.subarray(-16));
  const plain = decipher.update(data.subarray(0, -16));
  try {
    decipher.final();
    return plain;
  } catch {
    return null;
  }
}
