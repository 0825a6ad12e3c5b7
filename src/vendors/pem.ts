import { createPrivateKey, X509Certificate } from 'node:crypto';

/** What TLS is set up with, each as PEM. */
export interface Pems {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
}

/**
 * What cannot work in it.
 * @param wrong told the member, null for what concerns several, and what is wrong; nothing of the PEM is repeated, as it
 *   may be a secret
 */
export function checkPems(
  { ca, cert, key }: Pems,
  wrong: (member: keyof Pems | null, message: string) => void,
): void {
  if ((cert === null) !== (key === null)) wrong(null, 'cert and key must be set together');
  if (!canBe(ca, (pem) => new X509Certificate(pem))) wrong('ca', 'is not a certificate in PEM');
  if (!canBe(cert, (pem) => new X509Certificate(pem))) wrong('cert', 'is not a certificate in PEM');
  if (!canBe(key, createPrivateKey)) wrong('key', 'is not a private key in PEM, without a passphrase');
}

/** Those that are given. */
export function givenPems({ ca, cert, key }: Pems): Partial<Record<keyof Pems, string>> {
  return {
    ...(ca === null ? {} : { ca }),
    ...(cert === null ? {} : { cert }),
    ...(key === null ? {} : { key }),
  };
}

function canBe(pem: string | null, parse: (pem: string) => unknown): boolean {
  if (pem === null) return true;
  try {
    parse(pem);
    return true;
  } catch {
    return false;
  }
}
