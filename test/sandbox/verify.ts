import { Webhook } from 'standardwebhooks';
import type { Received } from './receiver.ts';

/** Asks the reference implementation whether a delivery was signed with the secret. */
export function verifyStandardWebhooks(
  secret: string,
  family: 'svix' | 'webhook',
  received: Received,
): boolean {
  const headers = Object.fromEntries(
    ['id', 'timestamp', 'signature'].map((name) => [
      `webhook-${name}`,
      String(received.headers[`${family}-${name}`]),
    ]),
  );
  try {
    new Webhook(secret).verify(received.body.toString(), headers);
    return true;
  } catch {
    return false;
  }
}
