import { randomBytes } from 'node:crypto';

/** The secrets in one text, separated by white space: during a rotation a file or variable has two, the new one first. */
export function splitSecrets(text: string): string[] {
  return text.split(/\s+/).filter((secret) => secret !== '');
}

/** A random secret in the format of Standard Webhooks. */
export function newSecret(): string {
  return `whsec_${randomBytes(32).toString('base64')}`;
}

/** Protects nothing: signs events for a developer's own handler, and fixtures, so that they can be verified without a setup. */
export const DEVELOPMENT_SECRET = `whsec_${Buffer.from('millrace development secret').toString('base64')}`;
