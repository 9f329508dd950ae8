// Finds text that is too pale: WCAG AA asks for 4.5:1, and 3:1 for large text.

/** The texts on the page that are not reached by it, each with its ratio. What is disabled is exempt. */
export function unreadable(page) {
  return page.evaluate(() => {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = 1;
    const pen = canvas.getContext("2d", { willReadFrequently: true });
    const seen = new Map();
    // Whatever a colour is written as, a canvas makes numbers of it.
    const numbers = (colour) => {
      if (!seen.has(colour)) {
        pen.clearRect(0, 0, 1, 1);
        pen.fillStyle = colour;
        pen.fillRect(0, 0, 1, 1);
        const [red, green, blue, alpha] = pen.getImageData(0, 0, 1, 1).data;
        seen.set(colour, [red, green, blue, alpha / 255]);
      }
      return seen.get(colour);
    };
    const over = (top, below) => [0, 1, 2].map((index) => top[index] * top[3] + below[index] * (1 - top[3])).concat(1);
    const ground = (element) => {
      const layers = [];
      for (let each = element; each !== null; each = each.parentElement) layers.push(numbers(getComputedStyle(each).backgroundColor));
      return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
    };
    const light = ([red, green, blue]) => {
      const [r, g, b] = [red, green, blue].map((part) => (part / 255 <= 0.04045 ? part / 255 / 12.92 : ((part / 255 + 0.055) / 1.055) ** 2.4));
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const found = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
      const element = node.parentElement;
      const text = node.textContent.trim();
      if (text === "" || element.closest("script, noscript, :disabled, option") !== null || element.getClientRects().length === 0) continue;
      const style = getComputedStyle(element);
      const below = ground(element);
      const [one, two] = [light(over(numbers(style.color), below)), light(below)];
      const ratio = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      if (ratio < (large ? 3 : 4.5)) found.push(`${text.slice(0, 40)}: ${ratio.toFixed(2)}`);
    }
    return [...new Set(found)];
  });
}
