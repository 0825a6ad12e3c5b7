import type { Page } from 'playwright-core';

// What the function below uses of a browser, where it runs; the project itself knows of no document.
interface PageElement {
  readonly parentElement: PageElement | null;
  checkVisibility(): boolean;
  closest(selector: string): PageElement | null;
}
declare const document: {
  readonly body: PageElement;
  createTreeWalker(
    root: PageElement,
    what: number,
  ): {
    nextNode(): { readonly parentElement: PageElement | null; readonly textContent: string | null } | null;
  };
};
declare function getComputedStyle(element: PageElement): {
  readonly [Name in 'backgroundColor' | 'color' | 'fontSize' | 'fontWeight']: string;
};
const SHOW_TEXT = 4;

interface SeenText {
  readonly text: string;
  readonly color: string;
  /** Of the element and all around it, innermost first. */
  readonly backgrounds: readonly string[];
  readonly size: number;
  readonly weight: number;
}

/** Texts whose contrast with what is behind them is below WCAG 2 AA (4.5, or 3 where it is large): `text: ratio`. */
export async function faintTexts(page: Page): Promise<string[]> {
  const found = (await seenTexts(page)).flatMap(({ text, color, backgrounds, size, weight }) => {
    const background = backgrounds.reduceRight<Color>((below, own) => over(parse(own), below), WHITE);
    const [one, other] = [luminance(over(parse(color), background)), luminance(background)];
    const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
    const isLarge = size >= 24 || (size >= 18.66 && weight >= 700);
    return ratio < (isLarge ? 3 : 4.5) ? [`${text.slice(0, 40)}: ${ratio.toFixed(2)}`] : [];
  });
  return [...new Set(found)];
}

function seenTexts(page: Page): Promise<SeenText[]> {
  return page.evaluate((what) => {
    const seen: SeenText[] = [];
    const walker = document.createTreeWalker(document.body, what);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const element = node.parentElement;
      const text = node.textContent?.trim() ?? '';
      if (element === null || text === '' || !element.checkVisibility()) continue;
      if (element.closest('noscript, #toast:not(.shown), :disabled') !== null) continue;
      const backgrounds: string[] = [];
      for (let at: PageElement | null = element; at !== null; at = at.parentElement)
        backgrounds.push(getComputedStyle(at).backgroundColor);
      const { color, fontSize, fontWeight } = getComputedStyle(element);
      const size = Number.parseFloat(fontSize);
      seen.push({ text, color, backgrounds, size, weight: Number(fontWeight) });
    }
    return seen;
  }, SHOW_TEXT);
}

type Color = readonly [r: number, g: number, b: number, a: number];

const WHITE: Color = [255, 255, 255, 1];

function parse(text: string): Color {
  const [r = 0, g = 0, b = 0, a = 1] = (text.match(/[\d.]+/g) ?? []).map(Number);
  return [r, g, b, a];
}

function over([r, g, b, a]: Color, [r2, g2, b2]: Color): Color {
  return [r * a + r2 * (1 - a), g * a + g2 * (1 - a), b * a + b2 * (1 - a), 1];
}

function luminance([r, g, b]: Color): number {
  return 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
}

function linear(value: number): number {
  const share = value / 255;
  return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
}
