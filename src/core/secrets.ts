/**
 * The secrets in one text, spaces or line breaks between: a file or a variable holds two during a rotation, the new one in
 * front. No secret of Standard Webhooks has a space in it.
 */
export function splitSecrets(text: string): string[] {
  return text.split(/\s+/).filter((secret) => secret !== '');
}
