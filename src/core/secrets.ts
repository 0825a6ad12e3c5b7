import { randomBytes } from 'node:crypto';

/**
 * The secrets in one text, spaces or line breaks between: a file or a variable holds two during a rotation, the new one in
 * front. No secret of Standard Webhooks has a space in it.
 */
export function splitSecrets(text: string): string[] {
  return text.split(/\s+/).filter((secret) => secret !== '');
}

/** A random one, as Standard Webhooks writes it. */
export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/**
 * Guards nothing: what signs for a developer's own handler, and fixtures, so that both are verified without a setup. It is the
 * base64 of its own description.
 */
export const DEVELOPMENT_SECRET = `whsec_${Buffer.from('millrace development secret').toString('base64')}`;
