import { generateKeyPairSync } from 'node:crypto';
import { dirname } from 'node:path';
import { makeFolder, OWNER_ONLY, readIfThere, syncFound } from './durable.ts';
import { writeOnce } from './new-file.ts';

/** The private key in a file: PKCS #8 in PEM. A missing file is made, with an Ed25519 key and mode 0600. Durable once it resolves. */
export async function openKeyPem(path: string): Promise<string> {
  const known = readIfThere(path);
  if (known !== null) {
    await syncFound(path);
    return known;
  }
  makeFolder(dirname(path), 0o700);
  const { privateKey } = generateKeyPairSync('ed25519');
  await writeOnce(path, Buffer.from(privateKey.export({ type: 'pkcs8', format: 'pem' })), OWNER_ONLY);
  // Another process may have been first.
  const made = readIfThere(path);
  if (made === null) throw new Error('has disappeared');
  return made;
}
