import { createPrivateKey, X509Certificate } from 'node:crypto';

/** Certificates and key of TLS, as PEM. */
export interface Pems {
  readonly ca: string | null;
  readonly cert: string | null;
  readonly key: string | null;
}

/** @param wrong called for each fault, with null for one of several members; the PEM is not repeated: it may be a secret */
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
export function givenPems(pems: Pems): Partial<Record<keyof Pems, string>> {
  return Object.fromEntries(Object.entries(pems).filter(([, pem]) => pem !== null));
}

function canBe(pem: string | null, parse: (pem: string) => unknown): boolean {
  try {
    if (pem !== null) parse(pem);
    return true;
  } catch {
    return false;
  }
}
